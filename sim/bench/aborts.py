"""Aborts of BF16 jobs at any moment: the one at work ends, and all others are right."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from weft.commands import JobFlag, Status
from weft.sim.bench.core_testbench import B, CoreTestbench, is_slow, the_config
from weft.sim.bench.limits import finishing
from weft.sim.bench.starts import place_all
from weft.sim.bench.streams import number

__all__ = ["at_any_moment", "in_chains", "in_rounds_of_c", "while_gathering"]

ACTIVE = 1 << 1  # in `activity`
_FLOATS = the_config().dtype == "bf16"
_STARTS = the_config().c_words > 0
_EITHER = frozenset({Status(0), Status.ABORTED})
_ABORTED = frozenset({Status.ABORTED})
_DONE = frozenset({Status(0)})
_KEEP, _ACCUMULATE = JobFlag.KEEP, JobFlag.ACCUMULATE


class Steps:
    """Counts the steps of the array; ``at_abort`` is what the count was at the latest abort."""

    def __init__(self, dut):
        self.count = self.at_abort = 0
        self._dut = dut
        cocotb.start_soon(self._run())

    async def _run(self):
        edge = RisingEdge(self._dut.clk)
        while True:
            await edge
            self.count += bool(number(self._dut.activity) & ACTIVE)
            if number(self._dut.cmd_abort):
                self.at_abort = self.count


@cocotb.test(skip=not _FLOATS)
async def at_any_moment(dut):
    """It is the job whose steps are under way, or due, that ends."""
    s = await CoreTestbench.start(dut)
    steps = Steps(dut)
    a, b, c = place_all(s, 3 * s.config.rows, 4 * s.config.cols, 5)
    await s.sent()
    for _ in range(8 if is_slow() else 100):
        jobs, ends, begin = [], [0], steps.count
        for _ in range(int(s.rng.integers(1, 4))):
            lines = [int(s.rng.integers(1, len(x.matrix) + 1)) for x in (a, b)]
            part = [s.part(x, count) for x, count in zip((a, b), lines, strict=True)]
            flags = JobFlag.ROUND if s.rng.random() < 0.5 else JobFlag(0)
            start = c if s.rng.random() < 0.5 else None
            jobs.append(s.job(*part, start, **finishing(s, flags, None), statuses=_EITHER))
            tiles = [g.panels(count) for g, count in zip(s.geometry, lines, strict=True)]
            ends.append(ends[-1] + tiles[0] * tiles[1] * a.matrix.shape[1])
        s.results.stall = int(s.rng.choice([0, 60]))
        await s.cycles(int(s.rng.integers(1, 40 + 2 * ends[-1])))
        await s.abort()
        await s.finish()
        check(jobs, ends, steps.at_abort - begin, s.slots)
        s.job(a, s.part(b, 1))
        await s.finish()


def check(jobs, ends, done, slots):
    """That the job which was at work ``done`` steps after the first began is the one that ended.

    ``ends[j]`` steps come before job j. A job in its last round may yet come to its end.
    """
    ended = [n for n, job in enumerate(jobs) if job.ended == Status.ABORTED]
    at_work = next((n for n in range(len(jobs)) if ends[n] <= done < ends[n + 1]), None)
    assert ended in ([], [at_work]), f"after {done} steps, job {at_work} must end, not {ended}"
    if at_work is not None and ends[at_work] < done <= ends[at_work + 1] - slots:
        assert ended, f"job {at_work} of ends {ends} must end after {done} steps"


@cocotb.test(skip=not _STARTS)
async def in_rounds_of_c(dut):
    """A job that is aborted before its first step, while C is put into the sums."""
    s = await CoreTestbench.start(dut)
    a, b, c = place_all(s, s.config.rows, 2 * s.config.cols, 5)
    await s.finish()
    for delay in range(4, 12 + s.slots * s.config.rows, 9 if is_slow() else 1):
        s.job(a, b, c, statuses=_ABORTED)
        await s.sent()
        await s.cycles(delay)
        await s.abort()
        s.job(a, b, c)
        s.job(a, b)
        await s.finish()


@cocotb.test(skip=not _FLOATS)
async def while_gathering(dut):
    """The next job's tiles, more of them than a pass has, come together while a job is aborted."""
    s = await CoreTestbench.start(dut)
    k = 8 + 16 // s.config.bytes_in
    a, b, _ = place_all(s, 3 * s.config.rows, 4 * s.config.cols, k)
    await s.sent()
    for delay in range(0, 24, 8 if is_slow() else 1):
        s.job(a, s.part(b, 1), statuses=_ABORTED)
        await s.sent()
        await s.cycles(4)
        s.job(a, b)
        s.job(s.part(a, 1), b)
        await s.sent()
        await s.cycles(delay)
        await s.abort()
        await s.finish()


@cocotb.test(skip=not _FLOATS)
async def in_chains(dut):
    """Of a chain over a whole pass, a link is aborted: its others follow, and jobs behind them."""
    s = await CoreTestbench.start(dut)
    steps = Steps(dut)
    a, b, _ = place_all(s, s.config.rows, 8 * s.config.cols, 8)
    await s.sent()
    each = s.geometry[B].panels(len(b.matrix)) * a.matrix.shape[1]
    unknown = np.ma.masked_all((len(a.matrix), len(b.matrix)), np.float32)
    for delay in range(4, 40, 18 if is_slow() else 2):
        for victim in range(3):
            begin = steps.count
            for link, flags in enumerate((_KEEP, _ACCUMULATE | _KEEP, _ACCUMULATE)):
                wrong = link == victim
                s.job(
                    a, b, flags=flags, finish=lambda sums: unknown,
                    statuses=_ABORTED if wrong else _DONE,
                )
                if wrong:
                    await s.sent()
                    while steps.count < begin + link * each:
                        await s.cycles(1)
                    await s.cycles(delay)
                    await s.abort()
            s.job(a, b)
            await s.finish()
