"""Halves of the packing memory become the command stream."""

import random

import pytest

from weft.hw.dma.pack_reader import PackReader
from weft.sim.amaranth_bench import checker, quiet, receive, simulate


@pytest.mark.parametrize("places", [1, 4])
@pytest.mark.parametrize("stall", [0, 0.6])
def test_sends(places, stall):
    """Rows of one to four stream words, the last one cut short; the memory is the bench's."""
    rng, dut = random.Random(1), PackReader(bytes_in=4, places=places)
    halves, due = [], []
    for rows in (1, 2, 5, 256, 1):
        whole = rng.randrange(1, places + 1)
        end = rng.randrange(whole)
        memory = {
            place | row * places: rng.getrandbits(32) for row in range(rows)
            for place in range(end + 1 if row == rows - 1 else whole)
        }
        halves.append((rows - 1, end, whole - 1, memory))
        due += memory.values()

    async def memory(ctx):
        first = second = 0
        for row, end, whole, words in halves:
            ctx.set(dut.row, row)
            ctx.set(dut.place, end)
            ctx.set(dut.places, whole)
            ctx.set(dut.filled, 1)
            released = False
            while not released:
                ctx.set(dut.word, second)
                _, _, en, address, released = await ctx.tick().sample(
                    dut.en, dut.address, dut.release
                )
                if en:
                    first, second = words[address], first
            ctx.set(dut.filled, 0)
            for _ in range(rng.choice([0, 5])):
                ctx.set(dut.word, second)
                if (await ctx.tick().sample(dut.en))[2]:
                    first, second = 0, first
        while True:
            ctx.set(dut.word, second)
            if (await ctx.tick().sample(dut.en))[2]:
                first, second = 0, first

    async def sink(ctx):
        assert await receive(ctx, dut.commands, len(due), stall=stall) == due
        await quiet(ctx, dut.commands)
        assert ctx.get(dut.idle)

    simulate(dut, sink, background=[memory, checker(dut.commands, "commands")])
