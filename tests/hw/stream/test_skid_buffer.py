"""Tests of the skid buffer: every word once, in order, at one word a cycle."""

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks
from weft.hw.stream.skid_buffer import SkidBuffer

WORDS = [n * 37 % 251 for n in range(300)]


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.7, 0.7), (0, 0.9)])
def test_every_word_passes_once_in_order(idle, stall):
    dut = SkidBuffer(8)

    async def source(ctx):
        await send(ctx, dut.i, WORDS, idle=idle, seed=1)

    async def sink(ctx):
        assert await receive(ctx, dut.o, len(WORDS), stall=stall, seed=2) == WORDS
        await quiet(ctx, dut.o)

    simulate(dut, source, sink, background=[checker(dut.o, "o")], limit=6000)


def test_rate_and_latency():
    dut, cycles = SkidBuffer(8), []

    async def source(ctx):
        await ticks(ctx, 3)
        await send(ctx, dut.i, WORDS[:50])

    async def sink(ctx):
        ctx.set(dut.o.ready, 1)
        for cycle in range(70):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            cycles.extend([cycle] * valid)

    simulate(dut, source, sink)
    assert cycles == list(range(3 + SkidBuffer.LATENCY, 53 + SkidBuffer.LATENCY))


def test_takes_nothing_in_reset():
    class Resettable(wiring.Component):
        def __init__(self):
            self.inner, self.reset = SkidBuffer(8), Signal()
            super().__init__(dict(self.inner.signature.members))

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = ResetInserter(self.reset)(self.inner)
            connect(m, flipped(self.i), self.inner.i)
            connect(m, self.inner.o, flipped(self.o))
            return m

    dut = Resettable()

    async def bench(ctx):
        await send(ctx, dut.i, [1, 2])
        ctx.set(dut.reset, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 1)
        for _ in range(3):
            assert not ctx.get(dut.i.ready) and not ctx.get(dut.o.valid)
            await ctx.tick()
        ctx.set(dut.reset, 0)
        ctx.set(dut.i.payload, 9)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.o.valid)
        assert ctx.get(dut.o.payload) == 9

    simulate(dut, bench)
