"""The pass builder against passes that the test builds from the same tiles."""

import random

import pytest
from amaranth.lib import data
from tiers import quick

from verif.amaranth_bench import checker, plain, pulse, put, quiet, send, simulate, ticks
from weft.commands import Status
from weft.hw.control.sequencer import PassBuilder

TILE = data.StructLayout({"name": 8, "last": 1, "status": 2, "failed": 1})
# Tiles of each job; -n: the job is aborted at its tile n, which is a failed tile.
JOBS = [1, 3, 4, 6, 7, 2, -1, 5, -2, -3, -4, 1, -1, 3]


def tiles(jobs=JOBS):
    name = 0
    for job in jobs:
        for n in range(abs(job)):
            last = n == abs(job) - 1
            failed = int(last and job < 0)
            yield {"name": name, "last": int(last), "status": failed, "failed": failed}
            name += 1


def passes(slots, jobs=JOBS):
    """Up to ``slots`` tiles of a job; a failed tile is a pass of its own."""
    group = []
    for tile in tiles(jobs):
        if group and tile["status"]:
            yield group
            group = []
        group.append(tile)
        if len(group) == slots or tile["last"]:
            yield group
            group = []


class Consumer:
    """Takes passes as the sequencer does: in rounds of all slots, a failed pass in one cycle."""

    def __init__(self, dut, *, stall=0.0, rounds=1, seed=2):
        self.dut, self.slots, self.stall, self.rounds = dut, dut.slots, stall, rounds
        self.rng = random.Random(seed)
        self.slot = 0
        self.cycles = 0

    async def cycle(self, ctx, ready):
        """One cycle in the next slot: whether a pass is valid, and its payload."""
        ctx.set(self.dut.slot, self.slot)
        ctx.set(self.dut.passes.ready, ready)
        stream = self.dut.passes
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        self.slot = (self.slot + 1) % self.slots
        self.cycles += 1
        ctx.set(stream.ready, 0)
        return valid, plain(payload)

    async def take(self, ctx):
        """The next pass, which must be the same in each of its rounds."""
        rounds = []
        while len(rounds) < self.rounds:
            ctx.set(self.dut.slot, self.slot)
            wait = self.slot or not ctx.get(self.dut.passes.valid)
            if wait or self.rng.random() < self.stall:
                await self.cycle(ctx, 0)
                continue
            if ctx.get(self.dut.passes.payload.lead.failed):
                valid, payload = await self.cycle(ctx, 1)
                return self.tiles([payload])
            last = len(rounds) == self.rounds - 1
            payloads = []
            for slot in range(self.slots):
                valid, payload = await self.cycle(ctx, last and slot == self.slots - 1)
                assert valid
                payloads.append(payload)
            rounds.append(self.tiles(payloads))
        assert all(one == rounds[0] for one in rounds)
        return rounds[0]

    def tiles(self, payloads):
        """The tiles of a pass, from its payloads in each slot."""
        found = [payload["tile"] for payload in payloads if payload["present"]]
        count = len(found)
        assert [p["present"] for p in payloads] == [1] * count + [0] * (len(payloads) - count)
        if not found[0]["status"]:
            assert [p["end"] for p in payloads[:count]] == [0] * (count - 1) + [1]
        assert all(payload["lead"] == found[0] for payload in payloads)
        return found


@pytest.mark.parametrize("slots", quick(2, [1, 3, 8, 2, 5]))
@pytest.mark.parametrize("idle, stall", [
    (0, 0), (0.5, 0.9),
    *(pytest.param(*flow, marks=pytest.mark.slow) for flow in ((0.9, 0.5), (0, 0.5), (0.5, 0))),
])
@pytest.mark.parametrize("rounds", [1, 3])
def test_builds_passes_of_the_tiles_of_a_job(slots, idle, stall, rounds):
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles()), idle=idle, seed=1)

    async def sink(ctx):
        consumer = Consumer(dut, stall=stall, rounds=rounds)
        for expected in passes(slots):
            assert await consumer.take(ctx) == expected
        await quiet(ctx, dut.passes)

    simulate(dut, source, sink, background=[checker(dut.tiles, "tiles")])


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_a_valid_pass_stays_until_it_is_taken(slots):
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles([3 * slots])))

    async def bench(ctx):
        await ticks(ctx, 4 * slots)
        assert not ctx.get(dut.tiles.ready)  # the next pass is complete, too
        for slot in (*range(slots), *reversed(range(slots))):
            ctx.set(dut.slot, slot)
            shown = plain(ctx.get(dut.passes.payload))
            assert (shown["lead"]["name"], shown["tile"]["name"]) == (0, slot)
        assert ctx.get(dut.passes.valid)

    simulate(dut, bench, background=[source])


def test_one_slot_is_combinational():
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
def test_a_pass_is_valid_in_the_cycle_after_its_last_tile(tail):
    dut = PassBuilder(tile=TILE, slots=3)

    async def bench(ctx):
        for tile in tiles([tail]):
            assert not ctx.get(dut.passes.valid)
            await send(ctx, dut.tiles, [tile])
        assert ctx.get(dut.passes.valid) and ctx.get(dut.tiles.ready)

    simulate(dut, bench)


@pytest.mark.parametrize("slots", [2, 3, 8])
@pytest.mark.parametrize("rounds", [1, 2])
def test_full_passes_follow_each_other_without_a_gap(slots, rounds):
    # Each is built while the one before runs, even if that is a single round.
    dut = PassBuilder(tile=TILE, slots=slots)

    async def source(ctx):
        await send(ctx, dut.tiles, list(tiles([3 * slots, 2 * slots, slots, slots])))

    async def sink(ctx):
        consumer = Consumer(dut, rounds=rounds)
        await consumer.take(ctx)
        start = consumer.cycles
        for _ in range(6):
            await consumer.take(ctx)
        assert consumer.cycles - start == 6 * rounds * slots

    simulate(dut, source, sink)


def test_a_failed_tile_does_not_join_the_pass_before_it():
    dut = PassBuilder(tile=TILE, slots=4)

    async def bench(ctx):
        first, second, failed = tiles([-3])
        await send(ctx, dut.tiles, [first, second])
        assert not ctx.get(dut.passes.valid)
        put(ctx, dut.tiles.payload, failed)
        ctx.set(dut.tiles.valid, 1)
        assert not ctx.get(dut.tiles.ready)
        await ctx.tick()
        assert ctx.get(dut.passes.valid) and ctx.get(dut.tiles.ready)
        await ctx.tick()
        ctx.set(dut.tiles.valid, 0)
        consumer = Consumer(dut)
        assert [await consumer.take(ctx) for _ in range(2)] == [[first, second], [failed]]
        await quiet(ctx, dut.passes)

    simulate(dut, bench)


def test_the_remaining_tiles_of_an_aborted_job_are_dropped():
    dut = PassBuilder(tile=TILE, slots=2)
    first, second, third, fourth, fifth, other = tiles([5, 1])

    async def bench(ctx):
        await send(ctx, dut.tiles, [first, second, third])
        await pulse(ctx, dut.abort)
        assert not ctx.get(dut.tiles.ready)
        assert not ctx.get(dut.cancel)
        ctx.set(dut.passes.ready, 1)
        assert ctx.get(dut.cancel)
        failed = {"status": Status.ABORTED, "failed": 1}
        shown = plain(ctx.get(dut.passes.payload))
        assert shown["lead"] == {**first, **failed}
        assert shown["tile"] == {**first, **failed, "last": 1}
        await ctx.tick()
        ctx.set(dut.passes.ready, 0)
        # Drops all tiles up to the last one of the job.
        put(ctx, dut.tiles.payload, fifth)
        await ticks(ctx, 3)
        await send(ctx, dut.tiles, [fourth])
        await ticks(ctx, 3)
        await send(ctx, dut.tiles, [fifth, other])
        assert await Consumer(dut).take(ctx) == [other]
        await quiet(ctx, dut.passes)

    simulate(dut, bench)


def test_an_abort_does_not_change_a_running_round():
    dut = PassBuilder(tile=TILE, slots=3)
    sent = list(tiles([3, 2]))

    async def bench(ctx):
        await send(ctx, dut.tiles, sent)
        for slot in range(3):
            ctx.set(dut.slot, slot)
            ctx.set(dut.abort, slot == 0)
            ctx.set(dut.passes.ready, slot == 2)
            shown = plain(ctx.get(dut.passes.payload))
            assert (shown["lead"], shown["tile"]) == (sent[0], sent[slot])
            assert not ctx.get(dut.cancel)
            await ctx.tick()
        ctx.set(dut.passes.ready, 0)
        assert await Consumer(dut).take(ctx) == sent[3:]  # not the aborted job

    simulate(dut, bench)
