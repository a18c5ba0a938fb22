"""Tests of `NetworkIp`: its name, and the values that it rejects."""

import pytest
from network_cores import MICRO, small_network_core
from rejects import rejects

from weft.config import ConfigError
from weft.network_core.ip import NetworkIp

CHIP = small_network_core(2, 4, 4)


def test_the_name_has_bus_options_and_array():
    assert NetworkIp(config=CHIP, bus="axi").name == "weft_axi_networks_2x4x4"
    ip = NetworkIp(config=CHIP, bus="wishbone", pipelined=True, prefix="mm")
    assert ip.name == "mm_wishbone_pipelined_networks_2x4x4"
    assert ip.options == ("pipelined",) and ip.array == CHIP.array


def test_the_peak():
    assert NetworkIp(config=MICRO, bus="axi").peak == 16
    assert NetworkIp(config=CHIP, bus="axi").peak == 32


@pytest.mark.parametrize("bus", ["stream", "dma", "pci"])
def test_rejects_buses_without_fifo_ports(bus):
    text = f"bus must be one of axi, wishbone, apb with a network core, not '{bus}'"
    with rejects(ConfigError, text):
        NetworkIp(config=CHIP, bus=bus)


def test_rejects_options_of_other_buses_and_wrong_prefixes():
    with pytest.raises(ConfigError, match="(?s)prefix must .*\npipelined must be False with bus"):
        NetworkIp(config=CHIP, bus="axi", pipelined=True, prefix="2x")
