"""Places follow each other through a memory, and come again."""

import pytest
from amaranth.hdl import Module, Signal

from weft.hw.buffers.lfsr import TAPS, lfsr_next
from weft.sim.amaranth_bench import simulate


@pytest.mark.parametrize("bits", TAPS)
def test_all_but_one_follow_each_other(bits):
    m, place = Module(), Signal(bits)
    m.d.sync += place.eq(lfsr_next(place))
    found = []

    async def bench(ctx):
        for _ in range(1 << bits):
            found.append(ctx.get(place))
            await ctx.tick()

    simulate(m, bench)
    assert found[0] == found[-1] == 0
    assert len({*found}) == (1 << bits) - 1 and (1 << bits) - 1 not in found
