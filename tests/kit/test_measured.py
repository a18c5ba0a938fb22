"""The section "Area and clock" of the data sheet."""

from types import SimpleNamespace

import pytest
from rejects import rejects

from weft.boards.devices import DEVICES
from weft.boards.toolchain import ToolchainError
from weft.config import Config
from weft.ip import Ip
from weft.kit.sheet import device, measure

CORE = Ip(config=Config(rows=1, cols=1), bus="axi")
PART = DEVICES["LFE5U-25F"]


class FakeToolchain:
    """Stands for `weft.boards.toolchain.Toolchain`: returns a fixed result."""

    def synthesize(self, design, part, folder):
        assert "module" in design and part is PART
        return "netlist"

    def place(self, netlist, part, seed, *, out_of_context):
        assert (netlist, part, seed, out_of_context) == ("netlist", PART, 3, True)
        used = dict.fromkeys(part.capacity, 0) | {"LUT": 6072}
        return SimpleNamespace(used=used, fmax=125.04, critical_path="from a to b")


@pytest.mark.slow
def test_text_has_area_and_clock(tmp_path):
    text = measure(CORE, PART, FakeToolchain(), folder=tmp_path, seed=3)
    assert "core alone on LFE5U-25F, from Yosys and nextpnr, seed 3: **125.0 MHz**" in text
    assert "0.13 GMAC/s" in text
    assert "| LUT | 6,072 | 24,288 | 25.0% |" in text


def test_rejects_an_unknown_device():
    with rejects(ToolchainError, f"device must be one of {', '.join(DEVICES)}, not 'z80'"):
        device("z80", CORE)


def test_rejects_a_device_of_another_target():
    other = Ip(config=Config(rows=1, cols=1, target="ice40up"), bus="axi")
    assert device("LFE5U-25F", CORE) is PART
    with rejects(ToolchainError, (
        "device must have target 'ice40up', not 'ecp5' as 'LFE5U-25F' has"
    )):
        device("LFE5U-25F", other)
