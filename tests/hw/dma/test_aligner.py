"""Stretches of beats become granules, whatever byte they start at."""

import random

import pytest

from weft.config import Config
from weft.hw.dma.address_generator import PackTask
from weft.hw.dma.aligner import Aligner
from weft.hw.dma.layout import granule, layouts
from weft.sim.amaranth_bench import plain, send, simulate, ticks

CONFIGS = {
    "2-of-16": Config(),
    "1-of-4": Config(rows=2, cols=2, bytes_in=4),
    "4-of-8": Config(rows=8, cols=8, depth=2, multiplier="plain", bytes_in=8),
    "16-of-16": Config(rows=8, cols=8, depth=8, multiplier="plain"),
}


def chunks(rng, width, size):
    """Pieces, a few to a chunk, each with the bytes of its stretch."""
    for n in range(20):
        pieces = rng.randrange(1, 4)
        for number in range(pieces):
            data = rng.randbytes(rng.choice([0, 1, 2, size, 3 * size - 1, 40]))
            granules = -(-len(data) // size) + rng.randrange(2) or 1
            end = int(number == pieces - 1)
            yield {
                "b": rng.randrange(2), "transposed": rng.randrange(2), "raw": rng.randrange(2),
                "real": int(bool(data)), "end": end, "final": int(end and n % 3 == 0), "place": 0,
                "offset": rng.randrange(width), "most": max(len(data) - 1, 0),
                "granules": granules - 1,
            }, data, number


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("idle, full", [(0, 0), (0.6, 0.8)])
def test_aligns(config, idle, full):
    rng = random.Random(config.bytes_in)
    width, size = config.bytes_in, granule(config)
    shape = PackTask(data_bytes=width, layouts=layouts(config))
    dut = Aligner(data_bytes=width, granule=size, piece=shape, pieces=4)
    items = [*chunks(rng, width, size)]
    beats, due, ends = [], [], {"begin": 0, "final": 0}
    for piece, data, number in items:
        if data:
            whole = rng.randbytes(piece["offset"]) + data
            whole += rng.randbytes(-len(whole) % width)
            beats += [whole[n : n + width] for n in range(0, len(whole), width)]
        ends["begin"] += number == 0
        ends["final"] += piece["final"]
        for index in range(piece["granules"] + 1):
            part = data[index * size : (index + 1) * size].ljust(size, b"\0")
            due.append({
                "bytes": [*part], **{name: piece[name] for name in ("b", "transposed", "raw")},
                "end": int(piece["end"] and index == piece["granules"]), "place": 0,
                "index": index, "number": number,
            })
    found, pulses = [], {"begin": 0, "final": 0}

    async def pieces(ctx):
        await send(ctx, dut.pieces, [piece for piece, _, _ in items])

    async def surroundings(ctx):
        """Room now and then; beats, of which what is asked for comes two cycles later."""
        draw, left, on_way = random.Random(1), [*beats], [bytes(size)] * 2
        there = False
        while True:
            ctx.set(dut.room, draw.random() >= full)
            there = bool(left) and (there or draw.random() >= idle)
            ctx.set(dut.there, there)
            ctx.set(dut.unit, int.from_bytes(on_way.pop(0), "little"))
            _, _, index, leaves = await ctx.tick().sample(dut.index, dut.leaves)
            part = slice(index * size, (index + 1) * size)
            on_way.append(left[0][part] if there else draw.randbytes(size))
            assert there or not leaves
            if leaves:
                left.pop(0)
                there = False

    async def watch(ctx):
        while len(found) < len(due):
            _, _, granules, *values = await ctx.tick().sample(dut.granules, dut.begin, dut.final)
            for name, value in zip(pulses, values, strict=True):
                pulses[name] += value
            if granules.valid:
                found.append(plain(granules.granule))
        await ticks(ctx, 10)

    simulate(dut, pieces, watch, background=[surroundings], limit=20_000)
    assert found == due
    assert pulses == ends
