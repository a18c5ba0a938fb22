"""The addresses of chunks: against products of coordinates and pitches, at any pace."""

import random
from dataclasses import replace

import pytest
from network_core_output import network_core_of
from side_port import hardware_address

from verif.amaranth_bench import plain, put, simulate
from weft.hw.network_core.output.map_store import ChunkAddresses
from weft.network_core.latencies import CHUNK_ADDRESS

CHIPS = [
    network_core_of(2, 2, 2, 1), network_core_of(3, 8, 2, 2), network_core_of(2, 2, 8, 1),
    network_core_of(1, 4, 4, 4),
    network_core_of(1, 4, 4, 2, read_vectors=1),
]


def walk(rng, config):
    """A random map: its ports, and for each chunk its flags and its place."""
    core = config.array
    height, width = rng.randint(1, 4), rng.randint(1, 4)
    columns, pitch = rng.randint(1, 3 * core.cols), rng.randint(1, 9)
    first, row_pitch = rng.randint(-30, 200), rng.randint(1, 40)
    ports = {
        "first": hardware_address(config, first), "width": width,
        "pixel_step": hardware_address(config, pitch),
        "row_step": hardware_address(config, row_pitch - (width - 1) * pitch),
    }
    pixels, chunks = [(y, x) for y in range(height) for x in range(width)], []
    while pixels:
        rows = rng.randint(1, core.rows)
        panel, pixels = pixels[:rows], pixels[rows:]
        for tile in range(0, columns, core.cols):
            for y, x in panel:
                for c in range(tile, min(tile + core.cols, columns), core.lanes):
                    row_end = c + core.lanes >= min(tile + core.cols, columns)
                    tile_end = row_end and (y, x) == panel[-1]
                    panel_end = tile_end and tile + core.cols >= columns
                    chunks.append(({
                        "index": 0, "line": 0, "lane_last": min(core.lanes, columns - c) - 1,
                        "row_end": row_end, "tile_end": tile_end, "panel_end": panel_end,
                        "last": panel_end and not pixels,
                    }, first + y * row_pitch + x * pitch + c // core.depth,
                        c % core.depth // core.lanes))
    return ports, chunks


@pytest.mark.parametrize("config", CHIPS, ids=lambda c: f"{c.array.name}-{c.array.lanes}")
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.4, 0.4)])
def test_addresses_of_chunks(config, idle, stall):
    rng = random.Random(3)
    dut = ChunkAddresses(config)
    base, limit = 3, config.words - 200

    async def job(ctx, ports, chunks):
        put(ctx, dut.window.base, base)
        put(ctx, dut.window.limit, limit)
        for name, value in ({**ports, "start": 1}).items():
            put(ctx, getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        pending, expected = list(chunks), [None] * CHUNK_ADDRESS
        while pending or any(expected):
            valid, enable = bool(pending) and rng.random() >= idle, rng.random() >= stall
            put(ctx, dut.en, enable)
            put(ctx, dut.i, {"valid": valid, "chunk": pending[0][0] if valid else chunks[0][0]})
            _, _, found = await ctx.tick().sample(dut.o)
            if not enable:
                continue
            wanted = expected.pop(0)
            assert bool(found.valid) == (wanted is not None)
            expected.append(pending.pop(0) if valid else None)
            if wanted:
                flags, number, part = wanted
                address = hardware_address(config, number)
                assert plain(found) == {
                    "valid": 1, "address": address, "part": part,
                    "lane_last": flags["lane_last"], "last": flags["last"],
                    "in_range": base <= address["word"] < limit,
                }

    async def bench(ctx):
        for _ in range(6):
            await job(ctx, *walk(rng, config))

    simulate(dut, bench)


@pytest.mark.parametrize("config", CHIPS[:4], ids=lambda c: f"{c.array.name}-{c.array.lanes}")
def test_the_frontier_is_the_first_pixel_that_is_not_stored(config):
    """It moves on in the cycle before the last chunk of a panel leaves, to the pixel behind it."""
    rng = random.Random(4)
    config = replace(config, early=True)
    dut = ChunkAddresses(config)

    async def job(ctx, ports, chunks):
        for name, value in ({**ports, "start": 1}).items():
            put(ctx, getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        put(ctx, dut.i, {"valid": 0, "chunk": chunks[0][0]})
        await ctx.tick().repeat(2)
        firsts = [number for n, (_, number, _) in enumerate(chunks)
                  if not n or chunks[n - 1][0]["panel_end"]]
        pending, stored, ended, frontiers = list(chunks), 0, 0, []
        while stored < len(chunks):
            valid = bool(pending) and rng.random() < 0.7
            put(ctx, dut.i, {"valid": valid, "chunk": (pending or chunks)[0][0]})
            if valid:
                pending.pop(0)
            _, _, out, frontier = await ctx.tick().sample(dut.o, dut.frontier)
            if out.valid:
                ended += chunks[stored][0]["panel_end"]
                stored += 1
            if frontiers and ended < len(firsts):
                assert frontiers[-1] == hardware_address(config, firsts[ended])
            frontiers.append(plain(frontier))

    async def bench(ctx):
        put(ctx, dut.en, 1)
        put(ctx, dut.window.limit, config.words)
        for _ in range(8):
            await job(ctx, *walk(rng, config))

    simulate(dut, bench)
