"""The multiplexer tree selects each part of a word."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from weft.hw.buffers.bank import mux_tree


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 6, 8])
def test_selects_the_indexed_part(parts):
    m = Module()
    word, index, found = Signal(4 * parts), Signal(range(parts)), Signal(4)
    m.d.comb += found.eq(mux_tree(word, index, 4))
    simulator = Simulator(m)

    async def bench(ctx):
        ctx.set(word, 0x9ABCDEF1 & (1 << 4 * parts) - 1)
        for n in range(parts):
            ctx.set(index, n)
            await ctx.delay(1e-6)
            assert ctx.get(found) == 0x9ABCDEF1 >> 4 * n & 15

    simulator.add_testbench(bench)
    simulator.run()
