"""Stretches of beats become granules, whatever byte they start at."""

import random

import pytest

from weft.config import Config
from weft.hw.dma.aligner import Aligner
from weft.hw.dma.layout import granule, layouts
from weft.hw.dma.walker import Piece
from weft.sim.amaranth_bench import plain, send, simulate, ticks

CONFIGS = {
    "2-of-16": Config(),
    "1-of-4": Config(rows=2, cols=2, bytes_in=4),
    "4-of-8": Config(rows=8, cols=8, depth=2, multiplier="plain", bytes_in=8),
    "16-of-16": Config(rows=8, cols=8, depth=8, multiplier="plain"),
}


def chunks(rng, width, size):
    """Pieces, a few to a chunk, each with the bytes of its stretch; some raw panels between."""
    for _ in range(20):
        if rng.random() < 0.2:
            count = rng.randrange(1, 4)
            yield {"raw": 1, "offset": 0}, rng.randbytes(count * width), 0
        pieces = rng.randrange(1, 4)
        for n in range(pieces):
            data = rng.randbytes(rng.choice([0, 1, 2, size, 3 * size - 1, 40]))
            granules = -(-len(data) // size) + rng.randrange(2) or 1
            yield {
                "b": rng.randrange(2), "transposed": rng.randrange(2), "real": bool(data),
                "end": n == pieces - 1, "offset": rng.randrange(width),
                "most": max(len(data) - 1, 0), "granules": granules - 1,
            }, data, n


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("idle, full", [(0, 0), (0.6, 0.8)])
def test_aligns(config, idle, full):
    rng = random.Random(config.bytes_in)
    width, size = config.bytes_in, granule(config)
    shape = Piece(data_bytes=width, layouts=layouts(config))
    dut = Aligner(data_bytes=width, granule=size, piece=shape, pieces=4)
    items = [*chunks(rng, width, size)]
    beats, due, raws, begins = [], [], [], 0
    for piece, data, number in items:
        whole = rng.randbytes(piece["offset"]) + data
        whole += rng.randbytes(-len(whole) % width) if data else b""
        lot = [int.from_bytes(whole[n : n + width], "little") for n in range(0, len(whole), width)]
        beats += lot if data else []
        if "raw" in piece:
            raws.append(lot)
            continue
        begins += number == 0
        for index in range(piece["granules"] + 1):
            part = data[index * size : (index + 1) * size].ljust(size, b"\0")
            due.append({
                "bytes": [*part], "b": piece["b"], "transposed": piece["transposed"],
                "end": int(piece["end"] and index == piece["granules"]),
                "index": index, "number": number,
            })
    names = shape.members
    found, begun, taken = [], [], []

    async def pieces(ctx):
        await send(ctx, dut.pieces, [{n: int(p.get(n, 0)) for n in names} for p, _, _ in items])

    async def room(ctx):
        draw = random.Random(1)
        while True:
            ctx.set(dut.room, draw.random() >= full)
            await ctx.tick()

    async def watch(ctx):
        while len(found) < len(due):
            _, _, granules, begin = await ctx.tick().sample(dut.granules, dut.begin)
            begun.append(begin)
            if granules.valid:
                found.append(plain(granules.granule))
        await ticks(ctx, 10)

    simulate(
        dut, pieces, watch, background=[room, source(dut, beats, raws, taken, idle)], limit=20_000
    )
    assert found == due
    assert sum(begun) == begins
    assert taken == raws


def source(dut, beats, raws, taken, idle):
    """Gives beats, and takes those that are raw."""

    async def bench(ctx):
        rng, at, valid = random.Random(2), 0, False
        panel = []
        while True:
            valid = valid or at < len(beats) and rng.random() >= idle
            ctx.set(dut.beats.valid, valid)
            if valid:
                ctx.set(dut.beats.payload, beats[at])
            await ctx.delay(1e-7)  # the piece on offer is there
            mine = valid and ctx.get(dut.raw)
            last = mine and len(panel) == len(raws[len(taken)]) - 1
            ctx.set(dut.raw_end, last)
            _, _, ready = await ctx.tick().sample(dut.beats.ready)
            if mine:
                panel.append(beats[at])
                if last:
                    taken.append(panel)
                    panel = []
            if mine or (valid and ready):
                at, valid = at + 1, False

    return bench
