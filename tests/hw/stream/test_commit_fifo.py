"""Tests of the FIFO with commit and discard."""

import random

import pytest

from verif.amaranth_bench import checker, pulse, quiet, receive, simulate
from weft.hw.stream.fifo import CommitFifo


async def fill(ctx, dut, data, end):
    for byte in data:
        ctx.set(dut.data, byte)
        ctx.set(dut.write, 1)
        await ctx.tick()
    ctx.set(dut.write, 0)
    await pulse(ctx, end)


FAST = pytest.mark.parametrize("fast", [False, True])


def run(bytes_out, stall, frames, fast):
    """Write frames of (bytes, whether to commit them), as space allows, and check the words."""
    dut = CommitFifo(bytes_out=bytes_out, depth=32, target="generic", fast=fast)
    committed = b"".join(data for data, good in frames if good)
    words = [
        int.from_bytes(committed[n : n + bytes_out], "little")
        for n in range(0, len(committed), bytes_out)
    ]

    async def source(ctx):
        for data, good in frames:
            for _ in range(3):
                await ctx.tick()
            while 32 - ctx.get(dut.level) < len(data):
                await ctx.tick()
            await fill(ctx, dut, data, dut.commit if good else dut.discard)

    async def sink(ctx):
        assert await receive(ctx, dut.words, len(words), stall=stall, seed=1) == words
        await quiet(ctx, dut.words)
        assert ctx.get(dut.level) == 0

    simulate(dut, source, sink, background=[checker(dut.words, "words")])


@FAST
def test_gives_the_words_of_committed_bytes(fast):
    rng = random.Random(1)
    for bytes_out in (1, 2, 8):
        for stall in (0, 0.9):
            frames = [
                (rng.randbytes(bytes_out * rng.randrange(1, 17 // bytes_out)), rng.random() < 0.6)
                for _ in range(30)
            ]
            run(bytes_out, stall, frames, fast)


@FAST
def test_level_counts_committed_bytes(fast):
    dut = CommitFifo(bytes_out=4, depth=16, target="generic", fast=fast)

    async def bench(ctx):
        await fill(ctx, dut, bytes(range(16)), dut.commit)
        for _ in range(40):  # one word waits at the output; the rest is in the FIFO
            await ctx.tick()
        assert ctx.get(dut.level) == 12

    simulate(dut, bench)


def test_a_fast_fifo_gives_a_byte_in_each_cycle():
    dut, data = CommitFifo(bytes_out=1, depth=64, target="generic", fast=True), bytes(range(64))

    async def bench(ctx):
        await fill(ctx, dut, data, dut.commit)
        ctx.set(dut.words.ready, 1)
        await ctx.tick().until(dut.words.valid)
        for byte in data[1:]:
            _, _, valid, word = await ctx.tick().sample(dut.words.valid, dut.words.payload)
            assert (valid, word) == (1, byte)

    simulate(dut, bench)
