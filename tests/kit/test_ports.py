"""The ports of a core: each has a description, and a port without one is an error."""

import pytest
from amaranth.lib.wiring import In, Out, Signature
from rejects import rejects

from weft.buses import BUSES
from weft.config import Config
from weft.hw.bus.bus_wrapper import BusWrapper
from weft.ip import Ip
from weft.kit.verilog import Port, ports


@pytest.mark.parametrize("bus", BUSES)
def test_every_port_has_a_description(bus):
    ip = Ip(config=Config(rows=2, cols=4), bus=bus)
    found = ports(Signature({"core_clk": In(1), **BusWrapper.pins(ip)}).create(), ip)
    assert all(port.text for port in found)
    assert found[0] == Port("core_clk", 1, False, "clock of the core")


def test_rejects_an_unknown_port_name():
    with rejects(ValueError, "port must have a known name, not 'm_axi_awwhat'"):
        ip = Ip(config=Config(rows=2, cols=4), bus="dma")
        ports(Signature({"aclk": In(1), "m_axi_awwhat": Out(1)}).create(), ip)
