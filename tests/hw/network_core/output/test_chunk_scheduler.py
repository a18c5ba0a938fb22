"""The chunk scheduler: the chunks of tiles, what a request waits for, and what follows it."""

import random

import pytest
from network_cores import small_network_core

from verif.amaranth_bench import checker, put, receive, simulate, ticks
from weft.hw.network_core.output.chunk_scheduler import ChunkGenerator, ChunkScheduler

CHIP = small_network_core(4, 4, 4, lanes=2)
TILE = {"valid": 1, "rows": 2, "cols": 3, "line": 5, "tile_last": 1, "last": 0}
PORTS = "row_written", "ready", "added_ready"


def run(bench):
    dut = ChunkScheduler(CHIP, buffer_rows=16)

    async def announce(ctx):
        put(ctx, dut.tiles, TILE)
        await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        await ticks(ctx, 8)
        await bench(ctx, dut)

    simulate(dut, announce)


async def cycle(ctx, dut, **values):
    """One cycle with these ports; returns (index, line, release) of its request, or None."""
    for name in PORTS:
        ctx.set(getattr(dut, name), values.get(name, 0))
    _, _, request, release = await ctx.tick().sample(dut.request, dut.release)
    assert request.valid or not release
    return (request.chunk.index, request.chunk.line, release) if request.valid else None


def test_a_request_waits_for_its_row_and_for_the_scalers():
    async def bench(ctx, dut):
        assert await cycle(ctx, dut, ready=1) is None
        assert await cycle(ctx, dut, ready=1, row_written=1) is None
        assert await cycle(ctx, dut) is None
        assert await cycle(ctx, dut, ready=1) == (0, 5, 0)
        assert await cycle(ctx, dut, ready=1) == (1, 6, 0)
        assert await cycle(ctx, dut, ready=1, row_written=1) is None
        assert await cycle(ctx, dut, ready=1) == (0, 5, 0)
        assert await cycle(ctx, dut) is None
        assert await cycle(ctx, dut, ready=1) == (1, 6, 1)
        assert await cycle(ctx, dut, ready=1) is None

    run(bench)


def test_with_add_a_request_waits_for_the_added_values():
    dut = ChunkScheduler(CHIP, buffer_rows=16)
    everything = {"ready": 1, "row_written": 1, "added_ready": 1}

    async def bench(ctx):
        ctx.set(dut.add, 1)
        put(ctx, dut.tiles, TILE)
        await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        await ticks(ctx, 4)
        # No chunk waits for its request before its read is accepted.
        assert await cycle(ctx, dut, **everything) is None
        assert ctx.get(dut.added.valid)
        ctx.set(dut.added.ready, 1)
        for _ in range(8):
            assert await cycle(ctx, dut, ready=1, row_written=1) is None
        found = [await cycle(ctx, dut, **everything) for _ in range(9)]
        assert found == [(0, 5, 0), (1, 6, 0), (0, 5, 0), (1, 6, 1), *[None] * 5]

    simulate(dut, bench)


def test_with_add_no_more_chunks_are_read_than_can_wait():
    dut = ChunkScheduler(CHIP, buffer_rows=64)

    async def bench(ctx):
        ctx.set(dut.add, 1)
        ctx.set(dut.added.ready, 1)
        for _ in range(16):
            put(ctx, dut.tiles, {**TILE, "rows": 4, "cols": 4})
            await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        await ticks(ctx, 40)
        assert not ctx.get(dut.added.valid)
        assert await cycle(ctx, dut, ready=1, row_written=1, added_ready=1) is None
        assert await cycle(ctx, dut, ready=1, row_written=1, added_ready=1)
        ctx.set(dut.ready, 0)
        reads = [(await ctx.tick().sample(dut.added.valid))[-1] for _ in range(10)]
        assert sum(reads) == 1

    simulate(dut, bench)


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_addresses_of_the_next_tile_are_behind_all_rows_of_a_tile(rows):
    dut = ChunkScheduler(CHIP, buffer_rows=16)
    addresses, indices = [], []

    async def bench(ctx):
        for _ in range(3):
            put(ctx, dut.tiles, {**TILE, "rows": rows})
            await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        await ticks(ctx, 8)
        requests = []
        for now in range(40):
            ctx.set(dut.row_written, now < 12)
            ctx.set(dut.ready, 1)
            ports = dut.request.valid, dut.address, dut.index
            _, _, valid, address, index = await ctx.tick().sample(*ports)
            requests.append(valid)
            if now >= dut.read_delay and requests[now - dut.read_delay]:
                addresses.append(address)
                indices.append(index)

    simulate(dut, bench)
    assert addresses == [4 * tile + row for tile in range(3) for row in range(rows) for _ in "ab"]
    assert indices == [0, 1] * 3 * rows


def pairs_of(tiles, together):
    """The chunks of tiles whose rows leave the array in pairs: of a row, or of two together."""
    for tile in tiles:
        last_row = tile["rows"] - 1
        for row in range(0, tile["rows"], 1 + together):
            tile_end = row + together >= last_row
            yield {
                "index": row % 2, "line": tile["line"], "lane_last": tile["cols"] - 1, "row_end": 1,
                "tile_end": tile_end, "panel_end": tile_end and tile["tile_last"],
                "last": tile_end and tile["last"],
                "pair_end": together or row % 2 or row == last_row,
            }


def chunks_of(config, tiles):
    for tile in tiles:
        lanes = config.array.lanes
        for row in range(tile["rows"]):
            for first in range(0, tile["cols"], lanes):
                row_end = first + lanes >= tile["cols"]
                tile_end = row_end and row == tile["rows"] - 1
                yield {
                    "index": first // lanes, "line": tile["line"] + first // lanes,
                    "lane_last": min(lanes, tile["cols"] - first) - 1, "row_end": row_end,
                    "tile_end": tile_end, "panel_end": tile_end and tile["tile_last"],
                    "last": tile_end and tile["last"],
                }


STALLS = pytest.mark.parametrize("stall", [0, 0.5])


@pytest.mark.parametrize("rows, cols, lanes", [(1, 1, 1), (2, 2, 2), (3, 8, 2), (5, 4, 1)])
@STALLS
def test_chunks_of_tiles(rows, cols, lanes, stall):
    config = small_network_core(rows, cols, 2, lanes=lanes, lines=16)
    tiles = random_tiles(config)
    generate(config, tiles, list(chunks_of(config, tiles)), stall)


@pytest.mark.parametrize("rows", [2, 4, 6])
@pytest.mark.parametrize("together", [0, 1])
@STALLS
def test_chunks_of_pairs_of_rows(rows, together, stall):
    config = small_network_core(rows, 4, 4, lanes=4, lines=16, hop=2, two_rows=True)
    tiles = random_tiles(config)
    for tile in tiles:  # a job that stores two rows has no odd panel
        tile["rows"] += together * (tile["rows"] % 2)
    generate(config, tiles, list(pairs_of(tiles, together)), stall, pairs=together)


@pytest.mark.parametrize("together, requests", [(1, [1, 0, 1, 0, 0]), (0, [1, 1, 0, 1, 0])])
def test_a_row_of_the_buffer_has_two_rows(together, requests):
    """The buffer gets a row, and some cycles later the second one of the tile."""
    config = small_network_core(4, 4, 4, lanes=4, hop=2, two_rows=True)
    dut, found = ChunkScheduler(config, buffer_rows=16), []

    async def bench(ctx):
        ctx.set(dut.pairs, together)
        put(ctx, dut.tiles, {**TILE, "rows": 3 + together, "cols": 4})
        await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        await ticks(ctx, 8)
        for row_written in (1, 0, together, 1 - together, 0, 0):
            found.append(await cycle(ctx, dut, ready=1, row_written=row_written))

    simulate(dut, bench)
    assert [int(request is not None) for request in found] == [0, *requests]


def random_tiles(config):
    core, rng = config.array, random.Random(config.array.rows)
    return [{
        "valid": 1, "rows": rng.randint(1, core.rows), "cols": rng.randint(1, core.cols),
        "line": rng.randrange(16 - core.cols // core.lanes), "tile_last": rng.randrange(2),
        "last": rng.randrange(2),
    } for _ in range(30)]


def generate(config, tiles, expected, stall, pairs=0):
    """Announce tiles one after the other, and compare their chunks."""
    dut = ChunkGenerator(config, depth=len(tiles))

    async def source(ctx):
        if config.two_rows:
            ctx.set(dut.pairs, pairs)
        for tile in tiles:
            put(ctx, dut.tiles, tile)
            await ctx.tick()
        ctx.set(dut.tiles.valid, 0)

    async def sink(ctx):
        assert await receive(ctx, dut.chunks, len(expected), stall=stall) == expected
        assert not ctx.get(dut.chunks.valid)

    # Three cycles to the first chunk, then one a cycle.
    limit = len(expected) + 5 if not stall else 4 * len(expected) + 50
    simulate(dut, source, sink, background=[checker(dut.chunks, "chunks")], limit=max(limit, 40))
