"""The pack reader: halves of the packing memory become the command stream."""

import random

import pytest

from verif.amaranth_bench import checker, quiet, receive, simulate
from weft.hw.dma.packer import PackReader


@pytest.mark.parametrize("row_words", [1, 4])
@pytest.mark.parametrize("stall", [0, 0.6])
def test_sends(row_words, stall):
    """Rows of one to four stream words, and a shorter last row, from a memory of the bench."""
    rng, dut = random.Random(1), PackReader(bytes_in=4, row_words=row_words)
    halves, expected = [], []
    for rows in (1, 2, 5, 256, 1):
        words = rng.randrange(1, row_words + 1)
        last_row_end = rng.randrange(words)
        contents = {
            index | row * row_words: rng.getrandbits(32) for row in range(rows)
            for index in range(last_row_end + 1 if row == rows - 1 else words)
        }
        halves.append((rows - 1, last_row_end, words - 1, contents))
        expected += contents.values()

    async def memory(ctx):
        first = second = 0
        for last_row, last_row_end, row_end, contents in halves:
            ctx.set(dut.half.last_row, last_row)
            ctx.set(dut.half.last_row_end, last_row_end)
            ctx.set(dut.half.row_end, row_end)
            ctx.set(dut.half.filled, 1)
            release = False
            while not release:
                ctx.set(dut.half.data, second)
                _, _, en, address, release = await ctx.tick().sample(
                    dut.half.enable, dut.half.address, dut.half.release
                )
                if en:
                    first, second = contents[address], first
            ctx.set(dut.half.filled, 0)
            for _ in range(rng.choice([0, 5])):
                ctx.set(dut.half.data, second)
                if (await ctx.tick().sample(dut.half.enable))[2]:
                    first, second = 0, first
        while True:
            ctx.set(dut.half.data, second)
            if (await ctx.tick().sample(dut.half.enable))[2]:
                first, second = 0, first

    async def sink(ctx):
        assert await receive(ctx, dut.commands, len(expected), stall=stall) == expected
        await quiet(ctx, dut.commands)
        assert ctx.get(dut.idle)

    simulate(dut, sink, background=[memory, checker(dut.commands, "commands")])
