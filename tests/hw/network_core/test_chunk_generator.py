"""The chunk generator: the chunks of tiles of any shape, one a cycle."""

import random

import pytest
from network_cores import small_network_core

from verif.amaranth_bench import checker, put, receive, simulate
from weft.hw.network_core.chunk_generator import ChunkGenerator


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


@pytest.mark.parametrize("rows, cols, lanes", [(1, 1, 1), (2, 2, 2), (3, 8, 2), (5, 4, 1)])
@pytest.mark.parametrize("stall", [0, 0.5])
def test_chunks_of_tiles(rows, cols, lanes, stall):
    config = small_network_core(rows, cols, 2, lanes=lanes, lines=16)
    rng = random.Random(rows)
    tiles = [{
        "valid": 1, "rows": rng.randint(1, rows), "cols": rng.randint(1, cols),
        "line": rng.randrange(16 - cols // lanes), "tile_last": rng.randrange(2),
        "last": rng.randrange(2),
    } for _ in range(30)]
    expected = list(chunks_of(config, tiles))
    dut = ChunkGenerator(config, depth=len(tiles))

    async def source(ctx):
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
