"""Aborts at every moment, through tiler, passes and sequencer: one job ends, others are right."""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.job_table import JobEntry
from weft.hw.control.pass_builder import PassBuilder
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tile_gate import TileGate
from weft.sim.amaranth_bench import simulate

A = Operand(2, 1, 64, 16)
B = Operand(2, 1, 128, 16)
GEOMETRIES = {Region.A: A, Region.B: B}
ALL = 15
REJECTED = object()


class Control(wiring.Component):
    """All between the job table and the array."""

    def __init__(self, slots):
        self.tiler = TileGate(
            geometries=GEOMETRIES, job=JobEntry(GEOMETRIES, ()), count=range(ALL + 1),
            job_index=range(4),
        )
        self.passes = PassBuilder(tile=self.tiler.Tile, slots=slots)
        self.sequencer = Sequencer(
            geometries=(A, B), tile=self.tiler.Tile, slots=slots, rows=2, depth=1, credits=4
        )
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tiler, m.submodules.passes = self.tiler, self.passes
        m.submodules.sequencer = self.sequencer
        connect(m, self.tiler.tiles, self.passes.tiles)
        connect(m, self.passes.passes, self.sequencer.passes)
        m.d.comb += [
            self.tiler.abort.eq(self.passes.cancel),
            self.passes.slot.eq(self.sequencer.slot),
            self.sequencer.release.eq(self.sequencer.step.drain),
        ]
        return m


def job(tag, down, across, k, **fields):
    return {
        "tag": tag, "m": 2 * down, "n": 2 * across, "k": k, "a_pitch": 1,
        "b_page": tag % 4, "b_pitch": 1, "accumulate": 0, "keep": 0, **fields,
    }


class Bench:
    """Jobs sent again and again, aborted elsewhere each time: what was seen, and what it must be.

    ``jobs`` are (cycle from which on it is there, tiles down, tiles across, k, other fields).
    ``starved``: cycles from which and up to which only so many panels of A and of B are there.
    """

    def __init__(self, slots, jobs, starved=(0, 0, ALL, ALL)):
        self.slots, self.starved = slots, starved
        self.due = [start for start, *_ in jobs]
        self.rejected = {tag for tag, (*_, f) in enumerate(jobs) if f is REJECTED}
        self.jobs = [
            job(tag, *sizes, **({} if f is REJECTED else f))
            for tag, (_, *sizes, f) in enumerate(jobs)
        ]
        self.dut = Control(slots)

    def run(self, *apart):
        """An abort in every cycle until all is over, and others so many cycles behind it."""
        async def bench(ctx):
            alone = await self.once(ctx, ())
            self.check((), alone)
            for t in range(max(t for t, now in enumerate(alone) if now.announced) + 3):
                aborts = t, *(t + cycles for cycles in apart)
                self.check(aborts, await self.once(ctx, aborts))

        simulate(self.dut, bench, limit=100_000)

    def signals(self):
        tiler, passes, sequencer = self.dut.tiler, self.dut.passes, self.dut.sequencer
        offer, results = passes.passes, sequencer.results
        return {
            "slot": sequencer.slot, "offered": offer.valid, "tag": offer.payload.lead.tag,
            "tile": tiler.tiles.valid & tiler.tiles.ready, "tile_last": tiler.tiles.payload.last,
            "free": tiler.jobs.ready,
            "cancel": passes.cancel, "announced": results.valid,
        }, {
            **{name: results.tile[name] for name in ("tag", "a_page", "b_page", "last", "status")},
            "slot": results.slot, "end": results.end,
        }

    async def once(self, ctx, aborts):
        """What is seen in each cycle; ``work`` is the job that the tiler has, the oldest.

        What the sequencer announces is noted in the cycle in which it decided on it.
        """
        jobs, loaded = self.dut.tiler.jobs, self.dut.tiler.ready_panels
        signals, facts = self.signals()
        every = Cat(*signals.values(), *facts.values())
        seen, waiting, quiet = [], list(zip(self.due, self.jobs, strict=True)), 0
        over = 0  # jobs of which the tiler has given the last tile
        while quiet < 3 * self.slots + 8:
            t = len(seen)
            since, until, *panels = self.starved
            ctx.set(loaded, panels if since <= t < until else [ALL, ALL])
            given = bool(waiting) and t >= waiting[0][0]
            if given:
                ctx.set(jobs.payload, waiting[0][1])
            ctx.set(jobs.valid, given)
            pulled = len(self.jobs) - len(waiting)
            ctx.set(self.dut.tiler.job_index, pulled % 4)
            ctx.set(self.dut.tiler.rejected, pulled - 1 in self.rejected)
            ctx.set(self.dut.passes.abort, t in aborts)
            _, _, word = await ctx.tick().sample(every)
            values = []
            for signal in (*signals.values(), *facts.values()):
                values.append(word & ((1 << len(signal)) - 1))
                word >>= len(signal)
            now = SimpleNamespace(**dict(zip(signals, values, strict=False)))
            now.work = over if over < pulled else None
            now.ends = now.tile and now.tile_last
            over += now.ends
            now.fact = dict(zip(facts, values[len(signals) :], strict=True))
            seen.append(now)
            if given and now.free:
                del waiting[0]
            busy = waiting or now.work is not None or now.offered or t <= max(aborts, default=0)
            quiet = 0 if busy else quiet + 1
        for now, later in zip(seen, seen[self.dut.sequencer.LATENCY :], strict=False):
            now.announced, now.fact = later.announced, later.fact
        return seen

    def tiles(self, one):
        """What is announced of a job that is left alone."""
        if one["tag"] in self.rejected:
            return [{"status": Status.REJECTED, "last": 1}]
        down, across = one["m"] // 2, one["n"] // 2
        found = []
        for n in range(down * across):
            last = n == down * across - 1
            found.append({
                "tag": one["tag"], "a_page": n // across, "b_page": one["b_page"] + n % across,
                "slot": n % self.slots, "end": int(last or n % self.slots == self.slots - 1),
                "last": int(last), "status": 0,
            })
        return found

    def target(self, seen, t):
        """The job that an abort in cycle ``t`` is for, or None where there is none to be ended."""
        now = seen[t]
        if self.slots == 1:
            # The tiler withdraws a tile in the second cycle after: in the first it may go.
            tag = None if now.ends or seen[t + 1].ends else now.work
        elif now.offered:
            # In its last turn it is too late.
            turn = seen[t - now.slot : t - now.slot + self.slots]
            facts = [one.fact for one in turn if one.announced]
            ends = any(fact["tag"] == now.tag and fact["last"] for fact in facts)
            tag = None if ends else now.tag
        else:
            following = seen[t + 1]
            tag = following.tag if following.offered else following.work
        return None if tag in self.rejected else tag

    def check(self, aborts, seen):
        announced = [(t, now.fact) for t, now in enumerate(seen) if now.announced]
        tags = [fact["tag"] for _, fact in announced]
        assert tags == sorted(tags) and set(tags) == set(range(len(self.jobs))), aborts
        targets = {}
        for t in aborts:
            targets.setdefault(self.target(seen, t), t)
        targets.pop(None, None)
        for one in self.jobs:
            tiles = [(t, fact) for t, fact in announced if fact["tag"] == one["tag"]]
            due = self.tiles(one)
            if one["tag"] in targets:
                *tiles, (end, void) = tiles
                assert (void["status"], void["last"]) == (Status.ABORTED, 1), aborts
                assert len(tiles) < len(due) and len(tiles) % self.slots == 0, aborts
                due = due[: len(tiles)]
                since = targets[one["tag"]]
                assert 0 <= end - since <= 2 * self.slots + 8, aborts
                if self.slots > 1:
                    self.check_given_up(seen, one["tag"], since, end, len(aborts))
            assert len(tiles) == len(due), aborts
            for (_, fact), wanted in zip(tiles, due, strict=True):
                assert {name: fact[name] for name in wanted} == wanted, aborts
        if self.slots > 1:
            # Nobody's job is given up but that of a target.
            for now in (now for now in seen if now.cancel and now.work is not None):
                assert now.work in targets or now.work in self.rejected, aborts
        self.check_phase(announced)

    def check_given_up(self, seen, tag, since, end, aborts):
        """The tiler is told to if it still has the job as that ends: by each abort till then."""
        told = sum(now.cancel for now in seen[since:end])
        if told:
            assert told <= aborts, (tag, since)
        else:
            assert seen[end].cancel == (seen[end].work == tag), (tag, since)

    def check_phase(self, announced):
        """Sums that are kept wait for the next pass in their slots."""
        for (early, kept), (late, fact) in zip(announced, announced[1:], strict=False):
            if self.jobs[kept["tag"]]["keep"] and not kept["status"]:
                assert (late - fact["slot"] - early + kept["slot"]) % self.slots == 0


KEPT, LAST = {"keep": 1}, {"accumulate": 1}
SCENES = {
    # Whole passes and parts of one, with and without room for the next to be gathered.
    "one-behind-the-other": [[(0, 1, 7, 2, {}), (0, 1, 2, 1, {}), (0, 2, 2, 3, {})]],
    "quick": [[(0, 2, 4, 1, {}), (0, 1, 1, 1, {}), (0, 1, 3, 1, {}), (0, 1, 4, 1, {})]],
    "slow": [[(0, 1, 7, 6, {}), (0, 1, 1, 1, {})]],
    "rejected": [[
        (0, 1, 4, 2, {}), (0, 1, 1, 1, REJECTED), (0, 1, 1, 1, REJECTED), (0, 1, 2, 1, {}),
    ]],
    "with-gaps": [[
        (3, 1, 2, 2, {}), (19, 1, 5, 1, {}), (31, 1, 1, 1, REJECTED), (47, 1, 1, 2, {}),
    ]],
    "kept": [[(0, 1, 1, 2, KEPT), (11, 1, 1, 2, LAST), (13, 1, 2, 2, KEPT), (24, 1, 2, 1, LAST)]],
    # Fed late: before its first tile, within a pass, between two.
    "starved-of-all": [[(0, 1, 4, 2, {}), (0, 1, 1, 1, {})], (0, 25, 0, 0)],
    "starved-in-a-pass": [[(0, 1, 4, 2, {}), (0, 1, 1, 1, {})], (0, 25, ALL, 2)],
    "starved-in-the-next": [[(0, 1, 8, 2, {}), (0, 1, 1, 1, {})], (0, 40, ALL, 5)],
}


@pytest.mark.parametrize("slots", [
    2, *(pytest.param(slots, marks=pytest.mark.slow) for slots in (1, 3)),
])
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_an_abort_ends_the_job_at_work_and_no_other(slots, scene):
    Bench(slots, *scene).run()


@pytest.mark.parametrize("apart", [
    2, *(pytest.param(cycles, marks=pytest.mark.slow) for cycles in (1, 3, 4, 6, 9)),
])
@pytest.mark.parametrize("scene", ["quick", "rejected", "starved-in-a-pass"])
def test_two_aborts_end_no_more_than_what_is_at_work(apart, scene):
    Bench(3, *SCENES[scene]).run(apart)
