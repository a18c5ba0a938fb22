"""The page of constraints: the clocks and the reset of this very core."""

import pytest

from weft.config import Config
from weft.ip import Ip
from weft.kit.constraints import constraints

CONFIG = Config(rows=1, cols=2, depth=1)


@pytest.mark.parametrize("bus, clock, reset, active", [
    ("axi", "aclk", "aresetn", "low"), ("wishbone", "wb_clk_i", "wb_rst_i", "high"),
])
def test_names_are_those_of_the_bus(bus, clock, reset, active):
    page = constraints(Ip(config=CONFIG, bus=bus))
    assert f"* **`{reset}`** is synchronous to `{clock}` and active {active}; a cycle of" in page
    assert f"[get_ports {clock}]" in page and "core_clk" not in page


def test_two_clocks_want_a_longer_reset_and_a_bound_between_them():
    page = constraints(Ip(config=CONFIG, bus="stream", clocks=2))
    assert "active low; hold it for 4 cycles of `core_clk`. A" in page
    assert "-from [get_clocks aclk] -to [get_clocks core_clk]" in page
    assert "_primitives.v" not in page


def test_primitives_are_told_of():
    config = Config(rows=1, cols=2, depth=2, target="ecp5")
    page = constraints(Ip(config=config, bus="axi"))
    assert "add `weft_axi_1x2x2_fip_ecp5_primitives.v`, with `NOISE` defined" in page
