"""The tile gate: which tiles it sends, in which cycles, and the effect of an abort in each one."""

import functools
import random
from types import SimpleNamespace

import pytest
from tiers import tiers

from verif.amaranth_bench import plain, put, simulate
from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.job_table import JobEntry
from weft.hw.control.tile_generator import TileGate

A = Operand(3, 2, 64, 16)
B = Operand(4, 2, 128, 16)
GEOMETRIES = {Region.A: A, Region.B: B}
ALL = 15
READY = {
    "always": lambda t: True, "late": lambda t: t > 30, "every-third": lambda t: t % 3 == 0,
    "every-second": lambda t: t % 2 == 0, "random": lambda t: random.Random(t).random() < 0.3,
}


def always(t):
    """The ready panels of a job that is not fed."""
    return ALL, ALL


def job(tag, down, across, *, start=0, rejected=False, panels=always):
    """A job of ``down`` x ``across`` tiles, valid from cycle ``start`` on.

    ``panels`` gives its ready panels in a cycle. Each tile is identified by its pages.
    """
    fields = {"tag": tag, "m": 3 * down, "n": 4 * across, "k": 5, "accumulate": 0, "keep": 0}
    fields |= {"a_page": 0, "a_pitch": 1, "b_page": 0, "b_pitch": 1, "epilogue": {}}
    names = [(tag, i, j) for i in range(down) for j in range(across)]
    return SimpleNamespace(
        fields=fields, start=start, rejected=rejected, panels=panels, names=names, tag=tag
    )


@functools.cache
def tile_gate():
    """The gate of all tests, elaborated once."""
    return TileGate(
        geometries=GEOMETRIES, job=JobEntry(GEOMETRIES, ()), count=range(ALL + 1),
        job_index=range(4),
    )


class GateTest:
    """A tile gate between a model of the job table and a consumer of tiles.

    As in the job table, ``job_index`` comes with a job, ``rejected`` is valid from the cycle after
    the pull on, and ``ready_panels`` from the cycle after that on.
    """

    def __init__(self, jobs, ready=READY["always"]):
        self.jobs, self.ready = jobs, ready
        self.dut = tile_gate()

    async def once(self, ctx, aborts=()):
        """Runs all jobs, with aborts in some cycles; returns the signals in each cycle."""
        dut, jobs, trace = self.dut, self.jobs, []
        ports = {
            "pulled": dut.jobs.ready, "valid": dut.tiles.valid, "tile": dut.tiles.payload,
            "starved": dut.starved,
        }
        pulled, quiet, panels = 0, 0, (0, 0)
        offered = ready_panels = None
        while quiet < 12:
            t = len(trace)
            job_valid = pulled < len(jobs) and t >= jobs[pulled].start
            ctx.set(dut.jobs.valid, job_valid)
            if job_valid and offered != pulled:
                put(ctx, dut.jobs.payload, jobs[pulled].fields)
                offered = pulled
            ctx.set(dut.job_index, pulled % 4)
            ctx.set(dut.rejected, pulled > 0 and jobs[pulled - 1].rejected)
            if panels != ready_panels:
                ctx.set(dut.ready_panels, list(ready_panels := panels))
            ctx.set(dut.tiles.ready, self.ready(t))
            ctx.set(dut.abort, t in aborts)
            panels = jobs[pulled - 1].panels(t) if pulled else (0, 0)
            _, _, *values = await ctx.tick().sample(*ports.values())
            now = SimpleNamespace(**dict(zip(ports, map(plain, values), strict=True)))
            now.ready = self.ready(t)
            now.fire = now.valid and now.ready
            now.pulled = now.pulled and job_valid
            now.name = now.tile["tag"], now.tile["a_page"], now.tile["b_page"]
            pulled += now.pulled
            busy = pulled < len(jobs) or now.valid or now.starved
            quiet = 0 if busy else quiet + 1
            trace.append(now)
        return trace

    def run(self, *aborts):
        found = []

        async def bench(ctx):
            found.extend(await self.once(ctx, aborts))

        simulate(self.dut, bench, limit=5_000)
        return found

    def sweep(self, *apart):
        """An abort in each cycle of a run; ``apart`` are the distances of further aborts."""
        async def bench(ctx):
            self.check((), await self.once(ctx))
            cycles = len(await self.once(ctx))
            for t in range(cycles):
                aborts = t, *(t + distance for distance in apart)
                self.check(aborts, await self.once(ctx, aborts))

        simulate(self.dut, bench, limit=200_000)

    def check(self, aborts, trace):
        """Each job has its tiles, in order; an aborted job has those that were taken."""
        targets = self.targets(aborts, trace)
        fired = iter([now for now in trace if now.fire])
        for one in self.jobs:
            names = one.names
            if one.rejected:
                names = []
            elif one.tag in targets:
                # A tile can still be taken in the cycle of the abort and in the next one.
                aborted = targets[one.tag]
                fired_before = [now for now in trace[: aborted + 2] if now.fire]
                names = [now.name for now in fired_before if now.tile["tag"] == one.tag]
                assert names == one.names[: len(names)], aborts
                failed = [now for now in trace[: aborted + 8] if now.valid and now.tile["failed"]]
                complete = names[-1:] == one.names[-1:]
                assert complete or one.tag in [now.tile["tag"] for now in failed], aborts
            for name in names:
                now = next(fired)
                last = name == one.names[-1]
                assert now.name == name, aborts
                assert (now.tile["last"], now.tile["status"], now.tile["failed"]) == (last, 0, 0)
            if one.names[-1:] != names[-1:]:
                end = next(fired).tile
                status = Status.REJECTED if one.rejected else Status.ABORTED
                assert (end["tag"], end["status"]) == (one.tag, status), aborts
                assert (end["last"], end["failed"]) == (1, 1), aborts
        assert next(fired, None) is None, aborts
        self.check_valid(aborts, trace)

    def targets(self, aborts, trace):
        """The cycle of the abort of each job, by tag: the oldest job, unless it just ended."""
        targets = {}
        for t in aborts:
            pulled = sum(now.pulled for now in trace[:t])
            done = sum(now.fire and now.tile["last"] for now in trace[:t])
            ends_now = t < len(trace) and trace[t].fire and trace[t].tile["last"]
            if pulled > done and not ends_now:
                targets.setdefault(self.jobs[done].tag, t)
        return targets

    def check_valid(self, aborts, trace):
        """A valid tile has its panels, and stays until it is taken or its job is aborted."""
        pulls = [t for t, now in enumerate(trace) if now.pulled]
        since = {one.tag: t for one, t in zip(self.jobs, pulls, strict=True)}
        for t, now in enumerate(trace):
            assert not (now.starved and now.valid), aborts
            if now.valid and not now.tile["failed"]:
                tag, i, j = now.name
                a, b = self.jobs[[one.tag for one in self.jobs].index(tag)].panels(t - 3)
                assert t >= since[tag] + 4 and i < a and j < b, (aborts, t)
            before = trace[t - 1] if t else now
            if before.valid and not before.fire and t - 2 not in aborts:
                assert now.valid and now.tile == before.tile, (aborts, t)


def fed(*times):
    """Panels of both operands, each ready from one of the cycles on."""
    return lambda t: (sum(t >= time for time in times),) * 2


SCENES = {
    "long": [job(1, 2, 3), job(2, 1, 1), job(3, 2, 2)],
    "single": [job(tag, 1, 1) for tag in range(1, 7)],
    "pairs": [job(tag, 1, 2) for tag in range(1, 5)],
    "rejected": [job(1, 1, 2), job(2, 1, 1, rejected=True), job(3, 2, 2, rejected=True),
                 job(4, 2, 1)],
    "fed-late": [job(1, 2, 2, panels=fed(20, 30)), job(2, 1, 1), job(3, 1, 2, panels=fed(60, 62))],
    "rejected-unfed": [job(1, 2, 2, rejected=True, panels=fed(10_000)), job(2, 1, 2)],
    "gaps": [job(1, 1, 2, start=4), job(2, 2, 1, start=20), job(3, 1, 1, start=31)],
    "fed-in-time": [job(1, 2, 2, panels=fed(3, 9)), job(2, 2, 1, panels=fed(12, 14))],
}
ALL_SCENES = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
FLOWS = pytest.mark.parametrize("ready", tiers(READY, "always", long={"every-second", "random"}))


@ALL_SCENES
@FLOWS
def test_an_abort_in_any_cycle_ends_only_the_active_job(scene, ready):
    GateTest(scene, ready).sweep()


@pytest.mark.parametrize("apart", [
    2, *(pytest.param(cycles, marks=pytest.mark.slow) for cycles in (1,)),
    *(pytest.param(cycles, marks=pytest.mark.long) for cycles in (3, 5, 8)),
])
@pytest.mark.parametrize("name", ["pairs", "rejected", "fed-in-time"])
@pytest.mark.parametrize("flow", ["always", "every-third"])
def test_two_aborts_end_only_active_jobs(name, flow, apart):
    GateTest(SCENES[name], READY[flow]).sweep(apart)


def valid_cycles(trace):
    """The first cycle in which each tile was valid."""
    before = [False, *(now.valid and not now.fire for now in trace)]
    return [t for t, now in enumerate(trace) if now.valid and not before[t]]


def test_one_tile_leaves_every_two_cycles():
    # Cycle 0 pull, 1 check, 2 tile generator, 3 wait stage, 4 output; then one every two cycles.
    trace = GateTest([job(1, 2, 4)]).run()
    assert trace[0].pulled
    assert valid_cycles(trace) == [4 + 2 * n for n in range(8)]


def test_the_next_job_is_pulled_once_the_last_tile_has_its_panels():
    trace = GateTest([job(1, 1, 2), job(2, 1, 1), job(3, 1, 1)]).run()
    pulls = [t for t, now in enumerate(trace) if now.pulled]
    # The last tile is in the wait stage one cycle before it is valid.
    assert valid_cycles(trace) == [4, 6, 9, 12]
    assert pulls == [0, 5, 8]


@pytest.mark.parametrize("missing, valid, starved", [
    (0, [23, 25, 43, 45, 48], [*range(3, 22), *range(26, 42)]),
    (1, [23, 43, 45, 47, 50], [*range(3, 22), *range(24, 42)]),
])
def test_a_tile_waits_for_both_its_panels(missing, valid, starved):
    # Panels of one operand, counted in cycles 20 and 40; the tile is valid three cycles later.
    def panels(t):
        counts = [ALL, ALL]
        counts[missing] = (t >= 20) + (t >= 40)
        return counts

    trace = GateTest([job(1, 2, 2, panels=panels), job(2, 1, 1)]).run()
    assert valid_cycles(trace) == valid
    assert [t for t, now in enumerate(trace) if now.starved] == starved


def test_three_tiles_wait_at_the_output():
    # They leave in consecutive cycles, the tiles behind them every two cycles.
    trace = GateTest([job(1, 2, 4)], READY["late"]).run()
    assert [t for t, now in enumerate(trace) if now.fire] == [31, 32, 33, 35, 37, 39, 41, 43]


def test_jobs_are_pulled_while_tiles_wait():
    trace = GateTest(SCENES["single"], READY["late"]).run()
    assert sum(now.pulled for now in trace[:30]) == 4


def test_a_valid_tile_is_withdrawn_if_its_job_is_aborted():
    trace = GateTest([job(1, 2, 4), job(2, 1, 1)], READY["late"]).run(20)
    # Registered one cycle after the pulse, withdrawn in the next.
    assert [now.name for now in trace[4:22]] == [(1, 0, 0)] * 18
    assert all(now.valid for now in trace[4:22])
    assert not trace[22].valid
    assert [(now.tile["tag"], now.tile["status"]) for now in trace if now.fire] == [
        (1, Status.ABORTED), (2, 0),
    ]


def test_a_valid_last_tile_becomes_a_failed_tile():
    trace = GateTest([job(1, 1, 1), job(2, 1, 1)], READY["late"]).run(20)
    assert [now.tile["failed"] for now in trace[4:31]] == [0] * 18 + [1] * 9
    assert all(now.valid for now in trace[4:31])


def test_an_abort_without_a_job_has_no_effect():
    jobs = [job(1, 1, 2, start=10), job(2, 1, 2, start=40)]
    trace = GateTest(jobs).run(*range(11), *range(25, 41))
    assert [now.name for now in trace if now.fire] == [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 0, 1)]
