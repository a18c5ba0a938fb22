"""A row holds the same entries as a queue in Python."""

import random
from collections import deque

from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from verif.formal.row import Row

SEED, DEPTH = 20, 3


def test_a_row_is_a_queue():
    m, rng, expected = Module(), random.Random(SEED), deque()
    put, take, value = Signal(), Signal(), Signal(4)
    row = Row(m, "row", DEPTH, put=put, value=value, take=take)
    others, level, seen = Signal(4 * DEPTH), Signal(3), set()
    m.d.comb += [others.eq(row.skip(1)), level.eq(row.level)]

    async def bench(ctx):
        for _ in range(300):
            entry = rng.randrange(16)
            take_now = bool(expected) and rng.random() < 0.5
            put_now = (take_now or len(expected) < DEPTH) and rng.random() < 0.5
            ctx.set(put, put_now)
            ctx.set(take, take_now)
            ctx.set(value, entry)
            await ctx.tick()
            if take_now:
                expected.popleft()
            if put_now:
                expected.append(entry)
            count = len(expected)
            seen.add((count, put_now, take_now))
            assert ctx.get(row.valid) == (1 << count) - 1
            assert (ctx.get(level), ctx.get(row.full)) == (count, count == DEPTH)
            assert [ctx.get(one) for one in row.values[:count]] == list(expected)
            for n, one in enumerate(list(expected)[1:]):
                assert ctx.get(others) >> 4 * n & 15 == one

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert {(DEPTH, True, True), (DEPTH, True, False), (0, False, True)} <= seen
