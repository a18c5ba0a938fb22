"""Pending tiles: each announced tile is offered once, in order, with its decoded flags."""

import random

import pytest
from amaranth.lib.data import StructLayout
from tiers import quick

from verif.amaranth_bench import checker, put, quiet, receive, simulate
from weft.commands import Region
from weft.geometry import Operand
from weft.hw.control.tile_generator import Tile
from weft.hw.output.reorder_buffer import PendingTile, PendingTiles

ROWS, COLS, DEPTH = 3, 5, 6


def results_layout(cols=COLS):
    """The layout of `Sequencer.Results`."""
    geometries = {Region.A: Operand(ROWS, 1, 64, 16), Region.B: Operand(cols, 1, 64, 16)}
    tile = Tile(geometries, StructLayout({"round": 1, "clamp": 1}))
    return StructLayout({
        "valid": 1, "tile": tile, "slot": range(4), "end": 1,
        "a_page": range(4), "b_page": range(4),
    })


def announcement(rng, cols=COLS):
    """A random announcement of the sequencer; a failed tile may have any size."""
    failed, hold = rng.random() < 0.2, rng.random() < 0.3
    return {
        "tile": {
            "rows": rng.randint(1, ROWS), "cols": rng.randint(1, cols), "tag": rng.randrange(99),
            "a_page": rng.randrange(4), "b_page": rng.randrange(4), "last": rng.randrange(2),
            "status": 2 if failed else 0, "failed": int(failed), "hold": int(hold),
            "epilogue": {"round": rng.randrange(2), "clamp": rng.randrange(2)},
        },
        "slot": rng.randrange(4), "end": rng.randrange(2),
        "a_page": rng.randrange(4), "b_page": rng.randrange(4),
    }


def pending(result, lanes):
    """The entry of an announcement."""
    tile = result["tile"]
    row, chunk = tile["rows"] == 1, tile["cols"] <= lanes
    no_data = tile["failed"] or tile["hold"]
    return {
        "tile": {name: tile[name] for name in PendingTile.TILE},
        **{name: result[name] for name in PendingTile.PASS},
        "single_row": int(row), "single_chunk": int(chunk), "no_data": int(no_data),
        "suppress": int(tile["hold"] and not tile["failed"]),
        "single_request": int(no_data or row and chunk),
    }


@pytest.mark.parametrize("cols, lanes", quick(3, [(1, 1), (5, 2), (3, 8), (5, 1)]))
@pytest.mark.parametrize("idle, stall", quick(2, [(0, 0), (0.5, 0.9), (0.5, 0), (0, 0.5)]))
def test_tiles_are_offered_in_order_with_their_flags(cols, lanes, idle, stall):
    rng = random.Random(cols)
    dut = PendingTiles(results=results_layout(cols), cols=cols, lanes=lanes, depth=DEPTH)
    announcements = [announcement(rng, cols) for _ in range(80)]
    pops = []

    async def source(ctx):
        for count, result in enumerate(announcements):
            while rng.random() < idle or count - len(pops) == DEPTH:
                put(ctx, dut.results, {"valid": 0, **announcement(rng, cols)})
                await ctx.tick()
            put(ctx, dut.results, {"valid": 1, **result})
            await ctx.tick()
        ctx.set(dut.results.valid, 0)

    async def watch(ctx):
        while True:
            fire = dut.tiles.valid & dut.tiles.ready
            if (await ctx.tick().sample(fire))[-1]:
                pops.append(1)

    async def sink(ctx):
        entries = await receive(ctx, dut.tiles, len(announcements), stall=stall, seed=2)
        assert entries == [pending(result, lanes) for result in announcements]
        await quiet(ctx, dut.tiles)

    simulate(dut, source, sink, background=[watch, checker(dut.tiles, "tiles")])


def test_depth_announcements_fit_without_a_pop():
    rng = random.Random(3)
    dut = PendingTiles(results=results_layout(), cols=COLS, lanes=2, depth=DEPTH)
    announcements = [announcement(rng) for _ in range(DEPTH)]

    async def bench(ctx):
        for result in announcements:
            put(ctx, dut.results, {"valid": 1, **result})
            await ctx.tick()
        ctx.set(dut.results.valid, 0)
        entries = await receive(ctx, dut.tiles, DEPTH)
        assert entries == [pending(result, 2) for result in announcements]
        await quiet(ctx, dut.tiles)

    simulate(dut, bench)
