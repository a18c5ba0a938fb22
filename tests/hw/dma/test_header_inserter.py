"""Headers become granules, whatever the size of either."""

import random

import pytest
from amaranth.lib import data

from weft.commands import HEADER_BYTES
from weft.hw.dma.aligner import PackWord
from weft.hw.dma.header_inserter import HeaderInserter
from weft.sim.amaranth_bench import simulate, ticks

PIECE = data.StructLayout({"place": 1, "granules": 8})


@pytest.mark.parametrize("size, width", [
    (1, 4), (2, 4), (4, 4), (2, 16), (8, 16), (16, 16), (1, 64), (32, 64), (64, 64),
])
@pytest.mark.parametrize("idle", [0, 0.5])
def test_hands_on(size, width, idle):
    rng = random.Random(size)
    shape = PackWord(granule=size, piece=PIECE, pieces=2)
    dut = HeaderInserter(bytes_in=width, granule=shape)
    headers = [rng.randbytes(HEADER_BYTES) for _ in range(3)]
    found, begins = [], []

    async def source(ctx):
        for header in headers:
            for index in range(HEADER_BYTES // 4):
                word = header[4 * index : 4 * index + 4]
                ctx.set(dut.word, int.from_bytes(word, "little"))
                ctx.set(dut.index, index)
                while ctx.get(dut.wait) or rng.random() < idle:
                    await ctx.tick()
                ctx.set(dut.take, 1)
                await ctx.tick()
                ctx.set(dut.take, 0)
        await ticks(ctx, 80)

    async def watch(ctx):
        async for _, _, granules, begin in ctx.tick().sample(dut.granules, dut.begin):
            begins.append(begin)
            if granules.valid:
                found.append(granules.granule)

    simulate(dut, source, background=[watch])
    assert sum(begins) == len(headers)
    whole = [header.ljust(max(width, HEADER_BYTES), b"\0") for header in headers]
    assert b"".join(bytes(one.bytes) for one in found) == b"".join(whole)
    count = len(whole[0]) // size
    assert [one.index for one in found] == [*range(count)] * len(headers)
    assert [one.end for one in found] == ([0] * (count - 1) + [1]) * len(headers)
    assert all(one.raw for one in found)
