"""Delays with registers, and without registers for stable values."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import play
from weft.hw.delay import MultiCycle


class Delays(wiring.Component):
    """``o`` is ``i``, delayed by each of ``steps`` in turn."""

    def __init__(self, stable, steps):
        self.stable, self.steps = stable, steps
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        last = MultiCycle(self.i, self.stable)
        for n, cycles in enumerate(self.steps):
            last = last.delay(m, cycles, f"step_{n}")
        self.last = last
        m.d.comb += self.o.eq(last.value)
        m.d.sync += Signal().eq(0)
        return m


@pytest.mark.parametrize("stable, steps", [
    (1, (0,)), (1, (2, 1)), (4, (2,)), (4, (2, 1)), (4, (3, 2)), (3, (5, 1)), (8, (0, 7)),
])
def test_a_value_is_valid_after_its_delay(stable, steps):
    dut = Delays(stable, steps)
    script = [{"i": 1 + n // stable} for n in range(10 * stable)]
    (found,) = play(dut, script, "o", tail=sum(steps))
    delay = sum(steps)
    for n in range(10):
        for cycle in range(dut.last.cycles):
            assert found[n * stable + delay + cycle] == 1 + n
