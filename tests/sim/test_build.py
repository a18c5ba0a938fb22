"""Cache keys of designs: hardware that a program registers is converted each time."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from weft.config import Config
from weft.hw import export
from weft.hw.arith.cells import MACS
from weft.mac_cells import MAC_CELLS, MacCell
from weft.sim import build, cache

CELL = """\
from weft.hw.arith.mac import Mac
from scales import SCALE


class ScaledMac(Mac):
    LATENCY = 2

    def product(self):
        return SCALE * self.a[0] * self.b[0]
"""


@pytest.fixture
def register(tmp_path, monkeypatch):
    """``register(scale)``: the cell of a file that imports its scale from another file."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # The cell alone, which is converted in an instant.
    monkeypatch.setattr(
        export, "verilog",
        lambda config: export.to_verilog(MACS[config.mac_cell](depth=1), name="weft"),
    )
    (tmp_path / "scaled.py").write_text(CELL)

    def registered(scale):
        (tmp_path / "scales.py").write_text(f"SCALE = {scale}\n")
        importlib.invalidate_caches()
        for name in ("scaled", "scales"):
            sys.modules.pop(name, None)
        if "scaled" in MAC_CELLS:
            MAC_CELLS.remove("scaled")
        MAC_CELLS.register(
            MacCell(name="scaled", multiplier="scaled", latency=2),
            hardware=importlib.import_module("scaled").ScaledMac,
        )
        return Config(multiplier="scaled")

    yield registered
    MAC_CELLS.remove("scaled")
    for name in ("scaled", "scales"):
        sys.modules.pop(name, None)


def key(config):
    """The cache key of the model of a Config."""
    dependencies, _ = build.design(lambda: build.verilog(config), repr(config))
    return cache.digest(*dependencies)


def test_a_changed_import_of_a_cell_gives_new_hardware(register):
    texts, keys = [], []
    for scale in (3, 5, 3):
        config = register(scale)
        texts.append(build.verilog(config))
        keys.append(key(config))
    assert texts[0] == texts[2] != texts[1]
    assert keys[0] == keys[2] != keys[1]


def test_the_verilog_of_registered_hardware_is_generated_once_for_a_model(register):
    register(3)
    made = []
    dependencies, verilog = build.design(lambda: made.append(1) or "module weft", "x")
    assert dependencies[-1] == verilog() == verilog() == "module weft"
    assert made == [1]


def test_hardware_of_weft_is_known_by_its_sources():
    dependencies, verilog = build.design(lambda: pytest.fail("generated"), "x")
    assert dependencies[-1] == "x"
    assert dependencies == build.design(verilog, "x")[0] != build.design(verilog, "y")[0]


def test_the_sources_contain_all_that_hardware_imports():
    """In a new process, which has imported nothing else."""
    script = """
import pkgutil, sys
from importlib import import_module
import weft.hw
for found in pkgutil.walk_packages(weft.hw.__path__, "weft.hw."):
    import_module(found.name)
print(*(m.__file__ for n, m in list(sys.modules.items()) if n.split(".")[0] == "weft"), sep="\\n")
"""
    run = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    known = set(build._sources())
    files = [Path(name) for name in run.stdout.split()]
    assert len(files) > 120
    assert [str(file) for file in files if file.read_bytes() not in known] == []
