"""Tests of the skid buffer: every word once, in order, at one word a cycle."""

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from streams import check_transfer, valid_cycles

from verif.amaranth_bench import send, simulate
from weft.hw.stream.fifo import SkidBuffer

WORDS = [n * 37 % 251 for n in range(300)]


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.7, 0.7), (0, 0.9)])
def test_every_word_passes_once_in_order(idle, stall):
    dut = SkidBuffer(8)
    check_transfer(dut, dut.i, dut.o, WORDS, idle=idle, stall=stall)


def test_rate_and_latency():
    dut = SkidBuffer(8)
    cycles = valid_cycles(dut, dut.i, dut.o, WORDS[:50], start=3)
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
