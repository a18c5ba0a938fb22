"""Passes against tiles gathered by hand."""

import pytest
from amaranth.lib import data

from weft.hw.control.passes import Passes
from weft.sim.amaranth_bench import checker, quiet, receive, send, simulate

TILE = data.StructLayout({"name": 8, "last": 1, "status": 2})
# Jobs of so many tiles; -n is a job aborted at its tile n, a tile that is void.
JOBS = [1, 3, 4, 6, 7, 2, -1, 5, -2, -3, -4, 1, -1, 3]


def tiles():
    name = 0
    for job in JOBS:
        for n in range(abs(job)):
            last = n == abs(job) - 1
            yield {"name": name, "last": int(last), "status": int(last and job < 0)}
            name += 1


def passes(slots):
    """Up to ``slots`` tiles of a job; a void tile is a pass of its own."""
    here = []
    for tile in tiles():
        if here and tile["status"]:
            yield here
            here = []
        here.append(tile)
        if len(here) == slots or tile["last"]:
            yield here
            here = []


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.9), (0.9, 0.5)])
def test_gathers_the_tiles_of_a_job(slots, idle, stall):
    dut = Passes(tile=TILE, slots=slots)
    expected = list(passes(slots))

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles()), idle=idle, seed=1)

    async def sink(ctx):
        for here in expected:
            [got] = await receive(ctx, dut.passes, 1, stall=stall, seed=2)
            assert got["active"] == (1 << len(here)) - 1
            assert got["tiles"][: len(here)] == here
        await quiet(ctx, dut.passes)

    checks = [checker(dut.passes, "passes"), checker(dut.tiles, "tiles")]
    simulate(dut, source, sink, background=checks)


def test_one_slot_costs_no_cycle():
    dut = Passes(tile=TILE, slots=1)

    async def bench(ctx):
        ctx.set(dut.tiles.valid, 1)
        assert ctx.get(dut.passes.valid) and not ctx.get(dut.tiles.ready)
        ctx.set(dut.passes.ready, 1)
        assert ctx.get(dut.tiles.ready)

    simulate(dut, bench)


def test_several_slots_offer_the_pass_in_the_cycle_after_its_last_tile():
    dut = Passes(tile=TILE, slots=3)

    async def bench(ctx):
        await send(ctx, dut.tiles, [{"name": n, "last": 0, "status": 0} for n in range(3)])
        assert ctx.get(dut.passes.valid) and not ctx.get(dut.tiles.ready)
        await receive(ctx, dut.passes, 1)
        assert ctx.get(dut.tiles.ready) and not ctx.get(dut.passes.valid)

    simulate(dut, bench)
