"""Hints in errors: the nearest name, and how to install missing tools, here and elsewhere."""

from importlib import metadata
from pathlib import Path

import pytest

from weft import hints
from weft.hints import did_you_mean, to_install

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = [
    "numpy>=2.0",
    "rich>=13",
    'peakrdl<2,>=1.5; extra == "kit"',
    'wasmtime<48; extra == "hw"',
    'amaranth<0.6,>=0.5.8; extra == "hw"',
    "tflite-micro>=0; (sys_platform == 'linux') and extra == 'test'",
]


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Weft lies in the folder of an environment, not in a checkout."""
    monkeypatch.setattr(hints, "_ROOT", tmp_path)
    monkeypatch.setattr(metadata, "requires", {"weft": REQUIRED}.__getitem__)


@pytest.mark.parametrize("name, said", [
    ("row", "; did you mean rows?"),
    ("ROWS", "; did you mean rows?"),
    ("dsp-cols", "; did you mean dsp_cols?"),
    ("speed", ""),
    ("", ""),
])
def test_names_the_nearest(name, said):
    assert did_you_mean(name, ("rows", "cols", "dsp_cols")) == said


@pytest.mark.parametrize("what, said", [
    ({"extra": "hw"}, "type: make setup, or: pip install -e '.[hw]'"),
    ({"extra": ""}, "type: make setup, or: pip install -e ."),
    ({"extra": "kit", "make": "make kit BUS=dma"},
     "type: make kit BUS=dma, or: pip install -e '.[kit]'"),
    ({"debian": "g++"}, "type: make setup, or: sudo apt-get install g++"),
    ({"site": "https://verilator.org"}, "type: make setup"),
])
def test_in_a_checkout(what, said, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert to_install(**what) == said


def test_names_the_checkout_where_it_is_not_the_folder_that_one_is_in(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert to_install(debian="make") == (
        f"type, in {ROOT}: make setup, or: sudo apt-get install make"
    )


def test_names_the_checkout_from_a_folder_that_was_deleted(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert to_install(site="x") == f"type, in {ROOT}: make setup"


@pytest.mark.parametrize("what, said", [
    ({"extra": "hw"}, "type: pip install 'wasmtime<48' 'amaranth<0.6,>=0.5.8'"),
    ({"extra": ""}, "type: pip install 'numpy>=2.0' 'rich>=13'"),
    ({"extra": "kit", "make": "make kit BUS=dma"}, "type: pip install 'peakrdl<2,>=1.5'"),
    ({"debian": "g++"}, "type: sudo apt-get install g++"),
    ({"site": "https://verilator.org"}, "see https://verilator.org"),
])
def test_outside_a_checkout_neither_make_nor_a_package_called_weft(elsewhere, what, said):
    assert to_install(**what) == said


def test_the_metadata_of_the_installed_weft_has_every_extra(elsewhere, monkeypatch):
    monkeypatch.undo()
    for extra in ("", "hw", "sim", "serial", "report", "kit"):
        assert list(hints._requirements(extra)), extra
