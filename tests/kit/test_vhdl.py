"""The VHDL component and the data sheet have the ports of the Verilog."""

import re

import pytest
from tiers import tiers

from weft.buses import BUSES

buses = pytest.mark.parametrize("bus", tiers({bus: bus for bus in BUSES}, "axi", "dma"))


def verilog_ports(text, name):
    """Name, width and direction of every port of a module."""
    body = re.search(rf"^module {name}\(.*?^endmodule", text, re.M | re.S)[0]
    return {
        port: (int(high) + 1 if high else 1, way)
        for way, high, port in re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", body, re.M)
    }


def vhdl_ports(text):
    kind = r"std_logic(?:_vector\((\d+) downto 0\))?"
    found = re.findall(rf"^ +(\w+) +: (in|out) +{kind};?$", text, re.M)
    return {
        port: (int(high) + 1 if high else 1, {"in": "input", "out": "output"}[way])
        for port, way, high in found
    }


@buses
def test_ports_match_the_verilog(kits, bus):
    ip, files = kits(bus)
    ports = verilog_ports(files[f"{ip.name}.v"].decode(), ip.name)
    assert vhdl_ports(files[f"{ip.name}.vhd"].decode()) == ports
    assert len(ports) > 10
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (in|out) \|", files["README.md"].decode(), re.M)
    assert {name: (int(bits), f"{way}put") for name, bits, way in rows} == ports
