"""Descriptor registers: written in any order, filed in theirs; 0 after a reset."""

import random

from weft.hw.ip.descriptors import WORDS, Descriptors
from weft.sim.amaranth_bench import checker, quiet, receive, simulate


def test_descriptors_are_filed_in_order_and_stay():
    dut = Descriptors()
    rng = random.Random(3)
    values = [0] * WORDS

    async def filed(ctx):
        while (await ctx.tick().sample(dut.filing))[-1]:
            pass

    async def write(ctx, index, value):
        values[index] = value
        ctx.set(dut.write, 1)
        ctx.set(dut.index, index)
        ctx.set(dut.data, value)
        await ctx.tick()
        ctx.set(dut.write, 0)

    async def bench(ctx):
        await filed(ctx)
        for _ in range(6):
            for index in rng.sample(range(WORDS), rng.randrange(WORDS)):
                await write(ctx, index, rng.getrandbits(32))
            for index, value in enumerate(values):
                ctx.set(dut.index, index)
                assert ctx.get(dut.word) == value
            ctx.set(dut.submit, 1)
            await ctx.tick()
            ctx.set(dut.submit, 0)
            assert await receive(ctx, dut.o, WORDS, stall=0.3, seed=2) == values
            await filed(ctx)
            await quiet(ctx, dut.o)

    simulate(dut, bench, background=[checker(dut.o, "descriptor")])
