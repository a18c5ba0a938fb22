"""`weft.torch` on a machine without PyTorch, and its entry point."""

import importlib
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def test_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "weft.torch", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("weft.torch")
    # No target of make installs it.
    said = str(caught.value)
    assert said.startswith("weft.torch needs the package torch; type")
    assert said.partition(": ")[2] == "pip install -e '.[torch]'"


def test_the_entry_point_names_the_backend():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["torch_dynamo_backends"]["weft"].partition(":")
    source = Path(importlib.util.find_spec("weft").origin).parent / "torch" / "__init__.py"
    assert module == "weft.torch" and f'"{name}"' in source.read_text(encoding="utf-8")
