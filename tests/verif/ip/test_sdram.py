"""The Verilog of an SDRAM controller, with a master of AXI4 from a third party."""

import re

import pytest

from verif.ip import sdram
from weft.config import Config
from weft.hw.export import to_verilog
from weft.hw.sdram.ip import SdramIp
from weft.sim.build import folder
from weft.sim.runner import run


def shell(text):
    """A module around ``weft_sdram`` with pins for IDs."""
    head = text[text.index("module weft_sdram("):]
    ports = re.findall(
        r"^  ((?:input|output) (?:\[\d+:0\] )?((?:s_axi|sdram)_\w+));", head, re.MULTILINE
    )
    return text + sdram.SHELL.format(
        ports=", ".join(port for port, _ in ports),
        connections=", ".join(f".{name}({name})" for _, name in ports),
    )


@pytest.mark.parametrize("simulator", [
    pytest.param("verilator", marks=pytest.mark.slow),
    pytest.param("icarus", marks=pytest.mark.long),
])
def test_verilog(simulator):
    chip = sdram.CHIP
    ip = SdramIp(chip, chip.timing(sdram.MHZ), data_bytes=sdram.DATA_BYTES)
    outcome = run(
        Config(rows=1, cols=1), simulator, build_dir=folder() / "ip", top="shell",
        verilog=shell(to_verilog(ip, name="weft_sdram")), modules=["verif.ip.sdram"],
    )
    assert outcome.tests == 3
