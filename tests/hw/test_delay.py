"""Values that come late: by registers, or since they stay."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import MultiCycle
from weft.sim.amaranth_bench import play


class Late(wiring.Component):
    """``o`` is ``i`` after some cycles, and then after some more."""

    def __init__(self, stays, steps):
        self.stays, self.steps = stays, steps
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        last = MultiCycle(self.i, self.stays)
        for n, cycles in enumerate(self.steps):
            last = last.delay(m, cycles, f"step_{n}")
        self.last = last
        m.d.comb += self.o.eq(last.value)
        m.d.sync += Signal().eq(0)
        return m


@pytest.mark.parametrize("stays, steps", [
    (1, (0,)), (1, (2, 1)), (4, (2,)), (4, (2, 1)), (4, (3, 2)), (3, (5, 1)), (8, (0, 7)),
])
def test_a_value_is_there_when_it_is_due(stays, steps):
    dut = Late(stays, steps)
    script = [{"i": 1 + n // stays} for n in range(10 * stays)]
    (found,) = play(dut, script, "o", tail=sum(steps))
    late = sum(steps)
    for n in range(10):
        for more in range(dut.last.cycles):
            assert found[n * stays + late + more] == 1 + n
