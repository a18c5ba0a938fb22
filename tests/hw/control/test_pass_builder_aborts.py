"""An abort in each cycle, through tile gate, pass builder and sequencer, ends exactly one job."""

import functools
from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect
from tiers import tiers

from verif.amaranth_bench import simulate
from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.job_table import JobEntry
from weft.hw.control.sequencer import PassBuilder, Sequencer
from weft.hw.control.tile_generator import TileGate

A = Operand(2, 1, 64, 16)
B = Operand(2, 1, 128, 16)
GEOMETRIES = {Region.A: A, Region.B: B}
ALL = 15
REJECTED = object()


class Control(wiring.Component):
    """The components between the job table and the array."""

    def __init__(self, slots):
        self.tile_gate = TileGate(
            geometries=GEOMETRIES, job=JobEntry(GEOMETRIES, ()), count=range(ALL + 1),
            job_index=range(4),
        )
        self.pass_builder = PassBuilder(tile=self.tile_gate.Tile, slots=slots)
        self.sequencer = Sequencer(
            geometries=(A, B), tile=self.tile_gate.Tile, slots=slots, rows=2, depth=1, credits=4
        )
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tile_gate = self.tile_gate
        m.submodules.pass_builder = self.pass_builder
        m.submodules.sequencer = self.sequencer
        connect(m, self.tile_gate.tiles, self.pass_builder.tiles)
        connect(m, self.pass_builder.passes, self.sequencer.passes)
        m.d.comb += [
            self.tile_gate.abort.eq(self.pass_builder.cancel),
            self.pass_builder.slot.eq(self.sequencer.slot),
            self.sequencer.release.eq(self.sequencer.step.drain),
        ]
        return m


control = functools.cache(Control)  # elaborated once for all tests of a number of slots


def job(tag, down, across, k, **fields):
    return {
        "tag": tag, "m": 2 * down, "n": 2 * across, "k": k, "a_pitch": 1,
        "b_page": tag % 4, "b_pitch": 1, "accumulate": 0, "keep": 0, **fields,
    }


class AbortTest:
    """Runs the same jobs again and again, each time with an abort in another cycle.

    ``jobs`` are (cycle from which on it is valid, tiles down, tiles across, k, other fields).
    ``starved``: first cycle, end, and the panels of A and B that are ready in these cycles.
    """

    def __init__(self, slots, jobs, starved=(0, 0, ALL, ALL)):
        self.slots, self.starved = slots, starved
        self.starts = [start for start, *_ in jobs]
        self.rejected = {tag for tag, (*_, f) in enumerate(jobs) if f is REJECTED}
        self.jobs = [
            job(tag, *sizes, **({} if f is REJECTED else f))
            for tag, (_, *sizes, f) in enumerate(jobs)
        ]
        self.dut = control(slots)

    def run(self, *apart):
        """An abort in each cycle of a run; ``apart`` are the distances of further aborts."""
        async def bench(ctx):
            undisturbed = await self.once(ctx, ())
            self.check((), undisturbed)
            for t in range(max(t for t, now in enumerate(undisturbed) if now.announced) + 3):
                aborts = t, *(t + cycles for cycles in apart)
                self.check(aborts, await self.once(ctx, aborts))

        simulate(self.dut, bench, limit=100_000)

    def signals(self):
        gate, builder, sequencer = self.dut.tile_gate, self.dut.pass_builder, self.dut.sequencer
        passes, results = builder.passes, sequencer.results
        return {
            "slot": sequencer.slot, "pass_valid": passes.valid, "tag": passes.payload.lead.tag,
            "tile_fire": gate.tiles.valid & gate.tiles.ready, "tile_last": gate.tiles.payload.last,
            "job_ready": gate.jobs.ready,
            "cancel": builder.cancel, "announced": results.valid,
        }, {
            **{name: results.tile[name] for name in ("tag", "a_page", "b_page", "last", "status")},
            "slot": results.slot, "end": results.end,
        }

    async def once(self, ctx, aborts):
        """The signals in each cycle; ``gate_job`` is the oldest job in the tile gate.

        Announcements are recorded in the cycle in which the sequencer decided on them.
        """
        jobs, ready_panels = self.dut.tile_gate.jobs, self.dut.tile_gate.ready_panels
        signals, facts = self.signals()
        probes = Cat(*signals.values(), *facts.values())
        trace, waiting, quiet = [], list(zip(self.starts, self.jobs, strict=True)), 0
        done = 0  # jobs whose last tile has left the tile gate
        offered = panels_before = None
        while quiet < 3 * self.slots + 8:
            t = len(trace)
            since, until, *panels = self.starved
            panels = panels if since <= t < until else [ALL, ALL]
            if panels != panels_before:
                ctx.set(ready_panels, panels_before := panels)
            job_valid = bool(waiting) and t >= waiting[0][0]
            if job_valid and offered != len(waiting):
                ctx.set(jobs.payload, waiting[0][1])
                offered = len(waiting)
            ctx.set(jobs.valid, job_valid)
            pulled = len(self.jobs) - len(waiting)
            ctx.set(self.dut.tile_gate.job_index, pulled % 4)
            ctx.set(self.dut.tile_gate.rejected, pulled - 1 in self.rejected)
            ctx.set(self.dut.pass_builder.abort, t in aborts)
            _, _, word = await ctx.tick().sample(probes)
            values = []
            for signal in (*signals.values(), *facts.values()):
                values.append(word & ((1 << len(signal)) - 1))
                word >>= len(signal)
            now = SimpleNamespace(**dict(zip(signals, values, strict=False)))
            now.gate_job = done if done < pulled else None
            now.gate_done = now.tile_fire and now.tile_last
            done += now.gate_done
            now.fact = dict(zip(facts, values[len(signals) :], strict=True))
            trace.append(now)
            if job_valid and now.job_ready:
                del waiting[0]
            busy = waiting or now.gate_job is not None or now.pass_valid
            quiet = 0 if busy or t <= max(aborts, default=0) else quiet + 1
        for now, later in zip(trace, trace[self.dut.sequencer.LATENCY :], strict=False):
            now.announced, now.fact = later.announced, later.fact
        return trace

    def tiles(self, one):
        """The announcements of a job that is not aborted."""
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

    def target(self, trace, t):
        """The job that an abort in cycle ``t`` ends, or None."""
        now = trace[t]
        if self.slots == 1:
            # The tile gate withdraws a tile in the second cycle after; in the first it can leave.
            tag = None if now.gate_done or trace[t + 1].gate_done else now.gate_job
        elif now.pass_valid:
            # In the last round of the job it is too late.
            cycles = trace[t - now.slot : t - now.slot + self.slots]
            facts = [one.fact for one in cycles if one.announced]
            ends = any(fact["tag"] == now.tag and fact["last"] for fact in facts)
            tag = None if ends else now.tag
        else:
            after = trace[t + 1]
            tag = after.tag if after.pass_valid else after.gate_job
        return None if tag in self.rejected else tag

    def check(self, aborts, trace):
        announced = [(t, now.fact) for t, now in enumerate(trace) if now.announced]
        tags = [fact["tag"] for _, fact in announced]
        assert tags == sorted(tags) and set(tags) == set(range(len(self.jobs))), aborts
        targets = {}
        for t in aborts:
            targets.setdefault(self.target(trace, t), t)
        targets.pop(None, None)
        for one in self.jobs:
            tiles = [(t, fact) for t, fact in announced if fact["tag"] == one["tag"]]
            expected = self.tiles(one)
            if one["tag"] in targets:
                *tiles, (end, failed) = tiles
                assert (failed["status"], failed["last"]) == (Status.ABORTED, 1), aborts
                assert len(tiles) < len(expected) and len(tiles) % self.slots == 0, aborts
                expected = expected[: len(tiles)]
                since = targets[one["tag"]]
                assert 0 <= end - since <= 2 * self.slots + 8, aborts
                if self.slots > 1:
                    self.check_cancels(trace, one["tag"], since, end, len(aborts))
            assert len(tiles) == len(expected), aborts
            for (_, fact), wanted in zip(tiles, expected, strict=True):
                assert {name: fact[name] for name in wanted} == wanted, aborts
        if self.slots > 1:
            # Only the jobs that an abort ends are cancelled.
            for now in (now for now in trace if now.cancel and now.gate_job is not None):
                assert now.gate_job in targets or now.gate_job in self.rejected, aborts
        self.check_phase(announced)

    def check_cancels(self, trace, tag, since, end, aborts):
        """The tile gate is cancelled if it still has the job, at most once for each abort."""
        cancels = sum(now.cancel for now in trace[since:end])
        if cancels:
            assert cancels <= aborts, (tag, since)
        else:
            assert trace[end].cancel == (trace[end].gate_job == tag), (tag, since)

    def check_phase(self, announced):
        """Sums that are held meet the next pass in their slots."""
        for (early, held), (late, fact) in zip(announced, announced[1:], strict=False):
            if self.jobs[held["tag"]]["keep"] and not held["status"]:
                assert (late - fact["slot"] - early + held["slot"]) % self.slots == 0


KEEP, LAST = {"keep": 1}, {"accumulate": 1}
SCENES = {
    # Full and partial passes, with and without time to build the next one.
    "back-to-back": [[(0, 1, 7, 2, {}), (0, 1, 2, 1, {}), (0, 2, 2, 3, {})]],
    "quick": [[(0, 2, 4, 1, {}), (0, 1, 1, 1, {}), (0, 1, 3, 1, {}), (0, 1, 4, 1, {})]],
    "slow": [[(0, 1, 7, 6, {}), (0, 1, 1, 1, {})]],
    "rejected": [[
        (0, 1, 4, 2, {}), (0, 1, 1, 1, REJECTED), (0, 1, 1, 1, REJECTED), (0, 1, 2, 1, {}),
    ]],
    "with-gaps": [[
        (3, 1, 2, 2, {}), (19, 1, 5, 1, {}), (31, 1, 1, 1, REJECTED), (47, 1, 1, 2, {}),
    ]],
    "keep": [[(0, 1, 1, 2, KEEP), (11, 1, 1, 2, LAST), (13, 1, 2, 2, KEEP), (24, 1, 2, 1, LAST)]],
    # Fed late: before the first tile, within a pass, between two passes.
    "starved-of-all": [[(0, 1, 4, 2, {}), (0, 1, 1, 1, {})], (0, 25, 0, 0)],
    "starved-in-a-pass": [[(0, 1, 4, 2, {}), (0, 1, 1, 1, {})], (0, 25, ALL, 2)],
    "starved-in-the-next": [[(0, 1, 8, 2, {}), (0, 1, 1, 1, {})], (0, 40, ALL, 5)],
}


@pytest.mark.parametrize("slots", [
    2, pytest.param(3, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long),
])
@pytest.mark.parametrize("scene", tiers(
    SCENES, "back-to-back", "quick", "rejected", "keep", "starved-in-a-pass"
))
def test_an_abort_ends_only_the_active_job(slots, scene):
    AbortTest(slots, *scene).run()


@pytest.mark.parametrize("apart", [
    2, *(pytest.param(cycles, marks=pytest.mark.slow) for cycles in (1,)),
    *(pytest.param(cycles, marks=pytest.mark.long) for cycles in (3, 4, 6, 9)),
])
@pytest.mark.parametrize("scene", ["quick", "rejected", "starved-in-a-pass"])
def test_two_aborts_end_only_active_jobs(apart, scene):
    AbortTest(3, *SCENES[scene]).run(apart)
