"""Tests of the area of the bus wrappers on an ECP5, including FIFOs and registers."""

import json
import subprocess

import pytest

from weft.boards.toolchain import to_rtlil
from weft.config import Config
from weft.hw.bus.top import BareWrapper
from weft.ip import Ip
from weft.sim import tools
from weft.sim.build import folder

MAX_LUTS = 400
SCRIPT = """\
read_rtlil top.il
synth_ecp5 -nowidelut -noiopad -top top
tee -q -o found.json stat -json
"""
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}  # of each cell


@pytest.mark.parametrize("bus, pipelined", [
    pytest.param(*case, marks=pytest.mark.slow if case[0] == "apb" else pytest.mark.long)
    for case in (
        ("axi", False), ("wishbone", False), ("wishbone", True), ("apb", False), ("stream", False),
    )
])
def test_wrapper_area(bus, pipelined):
    config = Config(target="ecp5", bytes_in=4, bytes_out=4)
    ip = Ip(config=config, bus=bus, pipelined=pipelined)
    place = folder() / "area" / ip.name  # Yosys cannot use a folder below /tmp
    place.mkdir(parents=True, exist_ok=True)
    (place / "top.il").write_text(to_rtlil(BareWrapper(ip)), encoding="utf-8")
    (place / "top.ys").write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run(
        [tools.yosys().path, "-q", "-s", "top.ys"], cwd=place, capture_output=True, text=True
    )
    assert run.returncode == 0, (run.stderr + run.stdout)[-1500:]
    report = json.loads((place / "found.json").read_text(encoding="utf-8"))
    cells = report["design"]["num_cells_by_type"]
    found = sum(count * cells.get(cell, 0) for cell, count in LUTS.items())
    print(ip.name, found, cells)
    assert 200 < found < MAX_LUTS
