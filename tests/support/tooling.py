"""Loads the programs in `tools` as modules; the folder is not a package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["load"]

FOLDER = Path(__file__).resolve().parents[2] / "tools"


def load(name: str) -> ModuleType:
    """A new module from ``tools/<name>.py``."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
