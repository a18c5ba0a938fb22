"""The LFSR sequence visits every address except all ones, and starts again."""

import pytest
from amaranth.hdl import Module, Signal

from verif.amaranth_bench import simulate
from weft.hw.stream.fifo import TAPS, lfsr_next


@pytest.mark.parametrize("bits", TAPS)
def test_the_sequence_has_full_length(bits):
    m, addr = Module(), Signal(bits)
    m.d.sync += addr.eq(lfsr_next(addr))
    found = []

    async def bench(ctx):
        for _ in range(1 << bits):
            found.append(ctx.get(addr))
            await ctx.tick()

    simulate(m, bench)
    assert found[0] == found[-1] == 0
    assert len({*found}) == (1 << bits) - 1 and (1 << bits) - 1 not in found
