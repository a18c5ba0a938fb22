"""Tests of the FIFO between two clock domains: every word once, in order."""

import random

import pytest

from weft.hw.bus.crossing import AsyncFifo

WORDS = [n * 37 % 251 for n in range(120)]


@pytest.mark.parametrize("w, r", [
    (1.0e-6, 1.0e-6), (1.0e-6, 0.73e-6), (1.0e-6, 4.1e-6), (3.7e-6, 1.0e-6)
])
@pytest.mark.parametrize("stall", [0, 0.6])
def test_every_word_passes_once_in_order(two_clocks, w, r, stall):
    dut = AsyncFifo(8, depth=4, write_domain="w", read_domain="r")
    rng = random.Random(4)

    async def send(ctx):
        for word in WORDS:
            while rng.random() < stall:
                await ctx.tick("w")
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            while not (await ctx.tick("w").sample(dut.i.ready))[-1]:
                pass
            assert ctx.get(dut.nonempty)
            ctx.set(dut.i.valid, 0)

    async def receive(ctx):
        received, stalled = [], None
        while len(received) < len(WORDS):
            ctx.set(dut.o.ready, ready := int(rng.random() >= stall))
            _, _, valid, word = await ctx.tick("r").sample(dut.o.valid, dut.o.payload)
            assert stalled in (None, word if valid else None)
            stalled = word if valid and not ready else None
            if valid and ready:
                received.append(word)
        assert received == WORDS
        for _ in range(30):
            await ctx.tick("w")
        assert not ctx.get(dut.nonempty) and not ctx.get(dut.next_valid)

    two_clocks(dut, {"w": w, "r": r}, send, receive)
