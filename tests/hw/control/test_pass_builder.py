"""Passes against tiles gathered by hand."""

import random

import pytest
from amaranth.lib import data

from weft.commands import Status
from weft.hw.control.pass_builder import PassBuilder
from weft.sim.amaranth_bench import checker, plain, put, quiet, send, simulate, ticks

TILE = data.StructLayout({"name": 8, "last": 1, "status": 2, "failed": 1})
# Jobs of so many tiles; -n is a job aborted at its tile n, a tile that is void.
JOBS = [1, 3, 4, 6, 7, 2, -1, 5, -2, -3, -4, 1, -1, 3]


def tiles(jobs=JOBS):
    name = 0
    for job in jobs:
        for n in range(abs(job)):
            last = n == abs(job) - 1
            void = int(last and job < 0)
            yield {"name": name, "last": int(last), "status": void, "failed": void}
            name += 1


def passes(slots, jobs=JOBS):
    """Up to ``slots`` tiles of a job; a void tile is a pass of its own."""
    here = []
    for tile in tiles(jobs):
        if here and tile["status"]:
            yield here
            here = []
        here.append(tile)
        if len(here) == slots or tile["last"]:
            yield here
            here = []


class Sequencer:
    """What takes passes, as the sequencer does: in rounds of all slots, void ones at once."""

    def __init__(self, dut, *, stall=0.0, rounds=1, seed=2):
        self.dut, self.slots, self.stall, self.rounds = dut, dut.slots, stall, rounds
        self.rng = random.Random(seed)
        self.slot = 0
        self.cycles = 0

    async def cycle(self, ctx, ready):
        """A cycle in the next slot: whether there is a pass, and what is shown of it."""
        ctx.set(self.dut.slot, self.slot)
        ctx.set(self.dut.passes.ready, ready)
        stream = self.dut.passes
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        self.slot = (self.slot + 1) % self.slots
        self.cycles += 1
        ctx.set(stream.ready, 0)
        return valid, plain(payload)

    async def take(self, ctx):
        """The next pass: the same in each of its rounds."""
        rounds = []
        while len(rounds) < self.rounds:
            ctx.set(self.dut.slot, self.slot)
            waits = self.slot or not ctx.get(self.dut.passes.valid)
            if waits or self.rng.random() < self.stall:
                await self.cycle(ctx, 0)
                continue
            if ctx.get(self.dut.passes.payload.lead.failed):
                valid, shown = await self.cycle(ctx, 1)
                return self.tiles([shown])
            last = len(rounds) == self.rounds - 1
            shown = []
            for slot in range(self.slots):
                valid, payload = await self.cycle(ctx, last and slot == self.slots - 1)
                assert valid
                shown.append(payload)
            rounds.append(self.tiles(shown))
        assert all(one == rounds[0] for one in rounds)
        return rounds[0]

    def tiles(self, shown):
        """The tiles of a pass, of what it shows in each slot."""
        here = [payload["tile"] for payload in shown if payload["present"]]
        count = len(here)
        assert [p["present"] for p in shown] == [1] * count + [0] * (len(shown) - count)
        if not here[0]["status"]:
            assert [p["end"] for p in shown[:count]] == [0] * (count - 1) + [1]
        assert all(payload["lead"] == here[0] for payload in shown)
        return here


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.9), (0.9, 0.5)])
@pytest.mark.parametrize("rounds", [1, 3])
def test_gathers_the_tiles_of_a_job(slots, idle, stall, rounds):
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles()), idle=idle, seed=1)

    async def sink(ctx):
        sequencer = Sequencer(dut, stall=stall, rounds=rounds)
        for here in passes(slots):
            assert await sequencer.take(ctx) == here
        await quiet(ctx, dut.passes)

    simulate(dut, source, sink, background=[checker(dut.tiles, "tiles")])


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_a_pass_on_offer_stays_until_it_is_taken(slots):
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles([3 * slots])))

    async def bench(ctx):
        await ticks(ctx, 4 * slots)
        assert not ctx.get(dut.tiles.ready)  # the next one is gathered, too
        for slot in (*range(slots), *reversed(range(slots))):
            ctx.set(dut.slot, slot)
            shown = plain(ctx.get(dut.passes.payload))
            assert (shown["lead"]["name"], shown["tile"]["name"]) == (0, slot)
        assert ctx.get(dut.passes.valid)

    simulate(dut, bench, background=[source])


def test_one_slot_costs_no_cycle():
    dut = PassBuilder(tile=TILE, slots=1)

    async def bench(ctx):
        ctx.set(dut.tiles.valid, 1)
        put(ctx, dut.tiles.payload, {"name": 9, "last": 0, "status": 0, "failed": 0})
        assert ctx.get(dut.passes.valid) and not ctx.get(dut.tiles.ready)
        shown = plain(ctx.get(dut.passes.payload))
        assert shown["lead"] == shown["tile"] == {"name": 9, "last": 0, "status": 0, "failed": 0}
        assert shown["present"] and shown["end"]
        ctx.set(dut.passes.ready, 1)
        assert ctx.get(dut.tiles.ready)
        ctx.set(dut.abort, 1)
        assert ctx.get(dut.cancel)
        ctx.set(dut.abort, 0)
        assert not ctx.get(dut.cancel)

    simulate(dut, bench)


@pytest.mark.parametrize("tail", [1, 2, 3])
def test_several_slots_offer_the_pass_in_the_cycle_after_its_last_tile(tail):
    dut = PassBuilder(tile=TILE, slots=3)

    async def bench(ctx):
        for tile in tiles([tail]):
            assert not ctx.get(dut.passes.valid)
            await send(ctx, dut.tiles, [tile])
        assert ctx.get(dut.passes.valid) and ctx.get(dut.tiles.ready)

    simulate(dut, bench)


@pytest.mark.parametrize("slots", [2, 3, 8])
@pytest.mark.parametrize("rounds", [1, 2])
def test_whole_passes_follow_each_other_without_a_gap(slots, rounds):
    # Each is gathered while the one before is at work, though that be a single round.
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles([3 * slots, 2 * slots, slots, slots])))

    async def sink(ctx):
        sequencer = Sequencer(dut, rounds=rounds)
        await sequencer.take(ctx)
        begun = sequencer.cycles
        for _ in range(6):
            await sequencer.take(ctx)
        assert sequencer.cycles - begun == 6 * rounds * slots

    simulate(dut, source, sink)


def test_a_void_tile_leaves_the_tiles_before_it_in_their_pass():
    dut = PassBuilder(tile=TILE, slots=4)

    async def bench(ctx):
        first, second, void = tiles([-3])
        await send(ctx, dut.tiles, [first, second])
        assert not ctx.get(dut.passes.valid)
        put(ctx, dut.tiles.payload, void)
        ctx.set(dut.tiles.valid, 1)
        assert not ctx.get(dut.tiles.ready)
        await ctx.tick()
        assert ctx.get(dut.passes.valid) and ctx.get(dut.tiles.ready)
        await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        sequencer = Sequencer(dut)
        assert [await sequencer.take(ctx) for _ in range(2)] == [[first, second], [void]]
        await quiet(ctx, dut.passes)

    simulate(dut, bench)


def test_what_the_tiler_still_has_of_a_job_that_was_ended_is_dropped():
    dut = PassBuilder(tile=TILE, slots=2)
    first, second, third, fourth, fifth, other = tiles([5, 1])

    async def bench(ctx):
        await send(ctx, dut.tiles, [first, second, third])
        ctx.set(dut.abort, 1)
        await ctx.tick()
        ctx.set(dut.abort, 0)
        assert not ctx.get(dut.tiles.ready)
        assert not ctx.get(dut.cancel)
        ctx.set(dut.passes.ready, 1)
        assert ctx.get(dut.cancel)
        ends = {"status": Status.ABORTED, "failed": 1}
        shown = plain(ctx.get(dut.passes.payload))
        assert shown["lead"] == {**first, **ends}
        assert shown["tile"] == {**first, **ends, "last": 1}
        await ctx.tick()
        ctx.set(dut.passes.ready, 0)
        # Whatever it does until the job's last tile.
        put(ctx, dut.tiles.payload, fifth)
        await ticks(ctx, 3)
        await send(ctx, dut.tiles, [fourth])
        await ticks(ctx, 3)
        await send(ctx, dut.tiles, [fifth, other])
        assert await Sequencer(dut).take(ctx) == [other]
        await quiet(ctx, dut.passes)

    simulate(dut, bench)


def test_an_abort_leaves_a_round_that_has_begun_as_it_is():
    dut = PassBuilder(tile=TILE, slots=3)
    given = list(tiles([3, 2]))

    async def bench(ctx):
        await send(ctx, dut.tiles, given)
        for slot in range(3):
            ctx.set(dut.slot, slot)
            ctx.set(dut.abort, slot == 0)
            ctx.set(dut.passes.ready, slot == 2)
            shown = plain(ctx.get(dut.passes.payload))
            assert (shown["lead"], shown["tile"]) == (given[0], given[slot])
            assert not ctx.get(dut.cancel)
            await ctx.tick()
        ctx.set(dut.passes.ready, 0)
        assert await Sequencer(dut).take(ctx) == given[3:]  # which was not at work

    simulate(dut, bench)
