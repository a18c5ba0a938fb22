"""The page of registers is the one that its tool writes, and what it leaves out is as it says."""

import itertools

from tooling import load

from weft.boards.designs import NETWORKS_85F
from weft.config import Config
from weft.ip import Ip
from weft.network_core.ip import NetworkIp
from weft.register_map import fifo_ports, registers

tool = load("registers")
AXI = Ip(config=Config(), bus="axi")
DMA = Ip(config=Config(), bus="dma", window=True)
NETWORKS = NetworkIp(config=NETWORKS_85F.config, bus="axi")


def test_the_page_is_up_to_date():
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


def test_it_has_the_registers_of_each_kind():
    for name in ("control", "cmd_fifo", "result_fifo", "doorbell", "dma_base", "net_status"):
        assert f"`{name}`" in tool.page()
    assert tool.page().count("| 0x404 | `status` |") == 2


def test_dma_has_the_registers_of_the_first_map_up_to_last_job():
    first, dma = registers(AXI), registers(DMA)
    names = [r.name for r in first]
    same = names.index("last_job") + 1
    assert [(r.name, r.address) for r in dma[:same]] == [(r.name, r.address) for r in first[:same]]
    assert not {r.name for r in dma[same:]} & {*names}
    assert not fifo_ports(DMA)


def test_a_network_core_has_the_fields_of_a_config_in_the_same_order():
    first = [r.name for r in registers(AXI)]
    fields = itertools.takewhile(is_field, first[4:])
    found = registers(NETWORKS)
    array = [r for r in found if r.name.startswith("array_")]
    assert [r.name for r in array] == [f"array_{name}" for name in fields]
    assert [r.address for r in array] == [16 + 4 * n for n in range(len(array))]


def is_field(name):
    """Whether a Config has the field."""
    return hasattr(Config(), name)


def test_irq_enable_has_the_bits_of_irq_status():
    for ip in (AXI, DMA, NETWORKS):
        status, enable = (
            next(r for r in registers(ip) if r.name == name)
            for name in ("irq_status", "irq_enable")
        )
        assert [(f.name, f.low, f.text) for f in enable.fields] == [
            (f.name, f.low, f.text) for f in status.fields
        ]
