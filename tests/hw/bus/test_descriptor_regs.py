"""Tests of the descriptor registers: written in any order, sent in order, 0 after a reset."""

import random

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring

from verif.amaranth_bench import checker, pulse, quiet, receive, simulate
from weft.hw.bus.csr_bank import WORDS, DescriptorRegs


def test_words_are_sent_in_order_and_stay():
    dut = DescriptorRegs()
    rng = random.Random(3)
    values = [0] * WORDS

    async def until_idle(ctx):
        while (await ctx.tick().sample(dut.submitting))[-1]:
            pass

    async def write(ctx, index, value):
        values[index] = value
        ctx.set(dut.write, 1)
        ctx.set(dut.index, index)
        ctx.set(dut.data, value)
        await ctx.tick()
        ctx.set(dut.write, 0)

    async def bench(ctx):
        await until_idle(ctx)
        for _ in range(6):
            for index in rng.sample(range(WORDS), rng.randrange(WORDS)):
                await write(ctx, index, rng.getrandbits(32))
            for index, value in enumerate(values):
                ctx.set(dut.index, index)
                assert ctx.get(dut.word) == value
            await pulse(ctx, dut.submit)
            assert await receive(ctx, dut.o, WORDS, stall=0.3, seed=2) == values
            await until_idle(ctx)
            await quiet(ctx, dut.o)

    simulate(dut, bench, background=[checker(dut.o, "descriptor")])


def test_all_words_are_0_after_a_reset():
    inner, reset = DescriptorRegs(), Signal()

    class Reset(wiring.Component):
        def __init__(self):
            super().__init__({})

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = ResetInserter(reset)(inner)
            return m

    async def bench(ctx):
        ctx.set(inner.data, 0xFFFFFFFF)
        for _ in range(2):
            await ctx.tick().until(~inner.submitting)
            for index in range(WORDS):
                ctx.set(inner.index, index)
                assert ctx.get(inner.word) == 0
            await pulse(ctx, inner.write)
            assert ctx.get(inner.word) == 0xFFFFFFFF
            await pulse(ctx, reset)

    simulate(Reset(), bench)
