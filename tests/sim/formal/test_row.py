"""A row of what waits: it is what a queue in Python is."""

import random
from collections import deque

from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from weft.sim.formal.row import Row

SEED, DEPTH = 20, 3


def test_a_row_is_a_queue():
    m, rng, expected = Module(), random.Random(SEED), deque()
    put, takes, value = Signal(), Signal(), Signal(4)
    row = Row(m, "row", DEPTH, put=put, value=value, takes=takes)
    behind, many, seen = Signal(4 * DEPTH), Signal(3), set()
    m.d.comb += [behind.eq(row.from_(1)), many.eq(row.many)]

    async def bench(ctx):
        for _ in range(300):
            offered = rng.randrange(16)
            leaves = bool(expected) and rng.random() < 0.5
            comes = (leaves or len(expected) < DEPTH) and rng.random() < 0.5
            ctx.set(put, comes)
            ctx.set(takes, leaves)
            ctx.set(value, offered)
            await ctx.tick()
            if leaves:
                expected.popleft()
            if comes:
                expected.append(offered)
            count = len(expected)
            seen.add((count, comes, leaves))
            assert ctx.get(row.there) == (1 << count) - 1
            assert (ctx.get(many), ctx.get(row.full)) == (count, count == DEPTH)
            assert [ctx.get(one) for one in row.values[:count]] == list(expected)
            for n, one in enumerate(list(expected)[1:]):
                assert ctx.get(behind) >> 4 * n & 15 == one

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert {(DEPTH, True, True), (DEPTH, True, False), (0, False, True)} <= seen
