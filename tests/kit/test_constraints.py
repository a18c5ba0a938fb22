"""The page of constraints and the constraint files: clocks, reset and crossings of a core."""

import re

import pytest

from weft.config import Config
from weft.ip import Ip
from weft.kit.build import constraint_files, constraints

CONFIG = Config(rows=1, cols=2, depth=1)


@pytest.mark.parametrize("bus, clock, reset, active", [
    ("axi", "aclk", "aresetn", "low"), ("wishbone", "wb_clk_i", "wb_rst_i", "high"),
    ("apb", "pclk", "presetn", "low"),
])
def test_page_names_clock_and_reset_of_the_bus(bus, clock, reset, active):
    page = constraints(Ip(config=CONFIG, bus=bus))
    assert f"* **`{reset}`** is synchronous to `{clock}` and active {active}; one cycle" in page
    assert f"[get_ports {clock}]" in page and "core_clk" not in page
    assert "weft_" + bus + "_1x2x1.xdc" in page


def test_two_clocks_need_a_longer_reset_and_a_limit_on_crossing_paths():
    page = constraints(Ip(config=CONFIG, bus="stream", clocks=2))
    assert "active low; hold it for 4 cycles of `core_clk`. Drive" in page
    assert "-from [get_clocks {aclk}] -to [get_clocks {core_clk}]" in page
    assert "_primitives.v" not in page


CROSSINGS = [("aclk", "core_clk"), ("core_clk", "aclk")]


def commands(ip, kind):
    """The lines of a file that are not comments; their brackets and quotes must be closed."""
    text = constraint_files(ip)[f"{ip.name}.{kind}"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in lines:
        assert all(line.count(a) == line.count(b) for a, b in ("[]", "{}")), line
        assert line.count('"') % 2 == 0, line
    return lines


@pytest.mark.parametrize("bus, clock", [
    ("axi", "aclk"), ("wishbone", "wb_clk_i"), ("apb", "pclk"),
])
def test_files_have_the_clock(bus, clock):
    ip = Ip(config=CONFIG, bus=bus)
    create = f"create_clock -name {clock} -period 10.000 [get_ports {{{clock}}}]"
    assert commands(ip, "sdc") == commands(ip, "xdc") == [create]
    assert commands(ip, "lpf") == [f'FREQUENCY PORT "{clock}" 100.0 MHZ;']


def test_files_limit_the_delay_between_two_clocks():
    ip = Ip(config=CONFIG, bus="stream", clocks=2)
    for kind in ("sdc", "xdc"):
        lines = commands(ip, kind)
        assert [line.split()[2] for line in lines[:2]] == ["aclk", "core_clk"]
        for a, b in CROSSINGS:
            path = f"-from [get_clocks {{{a}}}] -to [get_clocks {{{b}}}]"
            option = "-datapath_only " * (kind == "xdc")
            assert f"set_max_delay {option}{path} 10.000" in lines
            assert (f"set_false_path -hold {path}" in lines) == (kind == "sdc")
    assert commands(ip, "lpf") == [
        'FREQUENCY PORT "aclk" 100.0 MHZ;', 'FREQUENCY PORT "core_clk" 100.0 MHZ;',
        "BLOCK INTERCLOCKDOMAIN PATHS;",
    ]


@pytest.mark.slow
def test_xdc_names_the_synchronizer_registers(kits):
    ip, files = kits("axi", clocks=2)
    verilog = files[f"{ip.name}.v"].decode()
    names = re.findall(r"NAME =~ \*(\w+)_reg\*", files[f"{ip.name}.xdc"].decode())
    assert names == ["stage0", "stage1"]
    assert all(re.search(rf"^  reg (\[\d+:0\] )?{name}\b", verilog, re.M) for name in names)


def test_page_describes_the_models_of_primitives():
    config = Config(rows=1, cols=2, depth=2, target="ecp5")
    page = constraints(Ip(config=config, bus="axi"))
    assert "add `weft_axi_1x2x2_fip_ecp5_primitives.v` and define `NOISE`" in page
