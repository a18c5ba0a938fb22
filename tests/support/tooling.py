"""The programs of `tools`, as modules: that folder is no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["load"]

FOLDER = Path(__file__).resolve().parents[2] / "tools"


def load(name: str) -> ModuleType:
    """A new module of ``tools/<name>.py``."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
