"""Tests of the register map: no overlaps, and the registers and FIFO ports of each bus."""

import pytest
from network_cores import small_network_core

from weft.buses import BUSES
from weft.config import Config
from weft.ip import Ip
from weft.network_core import register_map as network_core_registers
from weft.network_core.ip import NetworkIp
from weft.register_map import constants, fifo_ports, interrupts, registers
from weft.registers import REGISTERS, SPACE


@pytest.fixture(params=[*BUSES, "networks"])
def ip(request):
    if request.param == "networks":
        return NetworkIp(config=small_network_core(2, 4, 4), bus="axi")
    return Ip(config=Config(), bus=request.param)


def test_registers_and_fifo_ports_do_not_overlap(ip):
    spans = [(r.address, r.address + 4) for r in registers(ip)]
    spans += [(p.address, p.address + p.size) for p in fifo_ports(ip)]
    assert all(start % 4 == 0 for start, _ in spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert spans[-1][1] <= SPACE
    names = [r.name for r in registers(ip)] + [p.name for p in fifo_ports(ip)]
    assert len(set(names)) == len(names)


def test_fields_fit_their_register_and_its_access(ip):
    for register in registers(ip):
        ends = [0]
        for field in register.fields:
            assert ends[-1] <= field.low and field.width > 0
            ends.append(field.low + field.width)
            kinds = {"ro": ("ro",), "wo": ("pulse", "wo"), "rw": ("rw", "w1c")}
            assert field.access in kinds[register.access], register.name
        assert ends[-1] <= 32


def test_core_registers_come_first(ip):
    core = [r for r in registers(ip) if r.address < 0x400]
    names = REGISTERS
    if isinstance(ip, NetworkIp):
        names = network_core_registers.REGISTERS
    assert [r.name for r in core] == names
    assert [r.address for r in core] == [4 * n for n in range(len(names))]
    assert list(constants(ip)) == names[: len(constants(ip))]


def test_interrupt_has_the_same_bit_on_every_bus():
    bits = {}
    for bus in BUSES:
        for field in interrupts(Ip(config=Config(), bus=bus)):
            assert bits.setdefault(field.name, field.low) == field.low
    assert len(set(bits.values())) == len(bits) == 9


def test_only_buses_without_streams_have_fifo_ports():
    found = {bus: [p.name for p in fifo_ports(Ip(config=Config(), bus=bus))] for bus in BUSES}
    both = ["cmd_fifo", "result_fifo"]
    assert found == {
        "axi": both, "wishbone": both, "apb": both, "stream": [], "dma": [],
    }


def test_dma_window_is_the_whole_address_space_after_reset():
    ip = Ip(config=Config(), bus="dma", window=True)
    found = {r.name: (r.address, r.fields[0].reset) for r in registers(ip)}
    without = Ip(config=Config(), bus="dma")
    known = {r.name: (r.address, r.fields[0].reset) for r in registers(without)}
    assert found == known | {"dma_base": (0x488, 0), "dma_limit": (0x48C, 0xFFFFFFFF)}


def test_the_first_registers_of_both_kinds_are_the_same():
    ips = Ip(config=Config(), bus="axi"), NetworkIp(config=small_network_core(2, 4, 4), bus="axi")
    product, network = ([(r.name, r.address) for r in registers(ip)[:4]] for ip in ips)
    assert product == network == [("magic", 0), ("version", 4), ("kind", 8), ("hash", 12)]
    words = [constants(ip) for ip in ips]
    assert words[0]["magic"] == words[1]["magic"] and words[0]["version"] == words[1]["version"]
    assert [each["kind"] for each in words] == [0, 1]
