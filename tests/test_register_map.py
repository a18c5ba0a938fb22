"""The register space: nothing overlaps, and each bus has what it needs."""

import pytest

from weft.config import Config
from weft.ip import BUSES, Ip
from weft.register_map import SPACE, fifo_ports, interrupts, registers
from weft.registers import REGISTERS


@pytest.fixture(params=BUSES)
def ip(request):
    return Ip(config=Config(), bus=request.param)


def test_nothing_overlaps(ip):
    spans = [(r.address, r.address + 4) for r in registers(ip)]
    spans += [(w.address, w.address + w.size) for w in fifo_ports(ip)]
    assert all(start % 4 == 0 for start, _ in spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert spans[-1][1] <= SPACE
    names = [r.name for r in registers(ip)] + [w.name for w in fifo_ports(ip)]
    assert len(set(names)) == len(names)


def test_fields_lie_in_their_register_and_agree_with_it(ip):
    for register in registers(ip):
        ends = [0]
        for field in register.fields:
            assert ends[-1] <= field.low and field.width > 0
            ends.append(field.low + field.width)
            kinds = {"ro": ("ro",), "wo": ("pulse",), "rw": ("rw", "w1c")}
            assert field.access in kinds[register.access], register.name
        assert ends[-1] <= 32


def test_the_core_describes_itself_at_the_start(ip):
    core = [r for r in registers(ip) if r.address < 0x400]
    assert [r.name for r in core] == REGISTERS
    assert [r.address for r in core] == [4 * n for n in range(len(REGISTERS))]


def test_an_interrupt_has_one_place_on_every_bus():
    places = {}
    for bus in BUSES:
        for field in interrupts(Ip(config=Config(), bus=bus)):
            assert places.setdefault(field.name, field.low) == field.low
    assert len(set(places.values())) == len(places) == 9


def test_only_buses_without_streams_have_windows():
    found = {bus: [w.name for w in fifo_ports(Ip(config=Config(), bus=bus))] for bus in BUSES}
    both = ["commands", "results"]
    assert found == {"axi": both, "wishbone": both, "stream": [], "dma": []}


def test_a_window_is_the_whole_space_after_a_reset():
    ip = Ip(config=Config(), bus="dma", window=True)
    found = {r.name: (r.address, r.fields[0].reset) for r in registers(ip)}
    without = Ip(config=Config(), bus="dma")
    known = {r.name: (r.address, r.fields[0].reset) for r in registers(without)}
    assert found == known | {"dma_base": (0x488, 0), "dma_limit": (0x48C, 0xFFFFFFFF)}
