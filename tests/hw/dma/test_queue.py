"""Queues: what goes in comes out, in order, whenever it is taken."""

import random

import pytest

from weft.hw.dma.queue import DmaQueue
from weft.sim.amaranth_bench import checker, put, quiet, receive, simulate


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.7, 0), (0, 0.7), (0.4, 0.5)])
def test_keeps_the_order(idle, stall):
    dut, rng = DmaQueue(shape=8, depth=8, target="generic"), random.Random(1)
    values = [rng.randrange(256) for _ in range(200)]

    async def source(ctx):
        left = [*values]
        while left:
            goes = ctx.get(dut.room) and rng.random() >= idle
            put(ctx, dut.put, goes)
            if goes:
                put(ctx, dut.value, left.pop(0))
            await ctx.tick()
        put(ctx, dut.put, 0)

    async def sink(ctx):
        assert await receive(ctx, dut.o, len(values), stall=stall) == values
        await quiet(ctx, dut.o)

    simulate(dut, source, sink, background=[checker(dut.o, "o")])


def test_says_when_it_is_full():
    dut = DmaQueue(shape=8, depth=4, target="generic")

    async def bench(ctx):
        count = 0
        while ctx.get(dut.room):
            ctx.set(dut.put, 1)
            ctx.set(dut.value, count)
            count += 1
            await ctx.tick()
        ctx.set(dut.put, 0)
        assert count == 4  # three in memory, one on its way out
        assert await receive(ctx, dut.o, 4) == [0, 1, 2, 3]

    simulate(dut, bench)
