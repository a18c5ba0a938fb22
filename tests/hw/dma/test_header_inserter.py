"""The header inserter: headers become pack words, for all sizes of both."""

import random

import pytest
from amaranth.lib import data

from verif.amaranth_bench import pulse, simulate, ticks
from weft.commands import HEADER_BYTES
from weft.hw.dma.engine import HeaderInserter
from weft.hw.dma.packer import PackWord

TASK = data.StructLayout({"last_row_end": 1, "last_word": 8})


@pytest.mark.parametrize("size, width", [
    (1, 4), (2, 4), (4, 4), (2, 16), (8, 16), (16, 16), (1, 64), (32, 64), (64, 64),
])
@pytest.mark.parametrize("idle", [0, 0.5])
def test_sends_headers(size, width, idle):
    rng = random.Random(size)
    shape = PackWord(pack_bytes=size, task=TASK, max_tasks=2)
    dut = HeaderInserter(bytes_in=width, pack_word=shape)
    headers = [rng.randbytes(HEADER_BYTES) for _ in range(3)]
    found, starts = [], []

    async def source(ctx):
        for header in headers:
            for index in range(HEADER_BYTES // 4):
                word = header[4 * index : 4 * index + 4]
                ctx.set(dut.word, int.from_bytes(word, "little"))
                ctx.set(dut.index, index)
                while ctx.get(dut.busy) or rng.random() < idle:
                    await ctx.tick()
                await pulse(ctx, dut.take)
        await ticks(ctx, 80)

    async def watch(ctx):
        async for _, _, words, start in ctx.tick().sample(dut.words, dut.slice_start):
            starts.append(start)
            if words.valid:
                found.append(words.word)

    simulate(dut, source, background=[watch])
    assert sum(starts) == len(headers)
    padded = [header.ljust(max(width, HEADER_BYTES), b"\0") for header in headers]
    assert b"".join(bytes(word.bytes) for word in found) == b"".join(padded)
    count = len(padded[0]) // size
    assert [word.index for word in found] == [*range(count)] * len(headers)
    assert [word.last for word in found] == ([0] * (count - 1) + [1]) * len(headers)
    assert all(word.packed for word in found)
