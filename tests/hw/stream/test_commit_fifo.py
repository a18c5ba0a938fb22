"""The queue that keeps bytes only once they are known to be right."""

import random

from weft.hw.stream.commit_fifo import CommitFifo
from weft.sim.amaranth_bench import checker, quiet, receive, simulate


async def fill(ctx, dut, data, end):
    for byte in data:
        ctx.set(dut.value, byte)
        ctx.set(dut.put, 1)
        await ctx.tick()
    ctx.set(dut.put, 0)
    ctx.set(end, 1)
    await ctx.tick()
    ctx.set(end, 0)


def run(bytes_out, stall, frames):
    """Give frames of (bytes, whether they are kept), as room allows; what must come, does."""
    dut = CommitFifo(bytes_out=bytes_out, depth=32, target="generic")
    kept = b"".join(data for data, good in frames if good)
    words = [
        int.from_bytes(kept[n : n + bytes_out], "little") for n in range(0, len(kept), bytes_out)
    ]

    async def source(ctx):
        for data, good in frames:
            for _ in range(3):
                await ctx.tick()
            while 32 - ctx.get(dut.used) < len(data):
                await ctx.tick()
            await fill(ctx, dut, data, dut.keep if good else dut.drop)

    async def sink(ctx):
        assert await receive(ctx, dut.words, len(words), stall=stall, seed=1) == words
        await quiet(ctx, dut.words)
        assert ctx.get(dut.used) == 0

    simulate(dut, source, sink, background=[checker(dut.words, "words")])


def test_words_of_what_was_kept():
    rng = random.Random(1)
    for bytes_out in (1, 2, 8):
        for stall in (0, 0.9):
            frames = [
                (rng.randbytes(bytes_out * rng.randrange(1, 17 // bytes_out)), rng.random() < 0.6)
                for _ in range(30)
            ]
            run(bytes_out, stall, frames)


def test_used_says_what_is_kept_and_not_out():
    dut = CommitFifo(bytes_out=4, depth=16, target="generic")

    async def bench(ctx):
        await fill(ctx, dut, bytes(range(16)), dut.keep)
        for _ in range(40):  # one word waits at the end; the rest is in the queue
            await ctx.tick()
        assert ctx.get(dut.used) == 12

    simulate(dut, bench)
