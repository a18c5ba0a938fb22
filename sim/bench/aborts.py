"""Aborts of BF16 jobs at any time: only the running job ends, and all others are correct."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from weft.commands import JobFlag, Status
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.bench.floats import load_operands
from weft.sim.bench.streams import number
from weft.sim.scenario import B

__all__ = ["abort_any_time", "abort_in_chain", "abort_in_preload", "abort_while_building_pass"]

ACTIVE = 1 << 1  # bit of the port `activity`
_BF16 = core_config().data_type.is_float
_HAS_C = core_config().c_words > 0
_EITHER = frozenset({Status(0), Status.ABORTED})
_ABORTED = frozenset({Status.ABORTED})
_DONE = frozenset({Status(0)})
_KEEP, _ACCUMULATE = JobFlag.KEEP, JobFlag.ACCUMULATE


class StepCounter:
    """Counts the steps of the array; ``at_abort`` is the count at the latest abort."""

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


@core_test(skip=not _BF16)
async def abort_any_time(tb):
    """An abort ends the job whose steps are executed, or are next."""
    steps = StepCounter(tb.dut)
    a, b, c = load_operands(tb, 3 * tb.config.rows, 4 * tb.config.cols, 5)
    await tb.wait_sent()
    for _ in range(8 if is_slow() else 100):
        jobs, ends, begin = [], [0], steps.count
        for _ in range(int(tb.rng.integers(1, 4))):
            lines = [int(tb.rng.integers(1, len(x.matrix) + 1)) for x in (a, b)]
            part = [tb.part(x, count) for x, count in zip((a, b), lines, strict=True)]
            flags = JobFlag.ROUND if tb.rng.random() < 0.5 else JobFlag(0)
            start = c if tb.rng.random() < 0.5 else None
            jobs.append(tb.job(*part, start, flags=flags, statuses=_EITHER))
            tiles = [g.panels(count) for g, count in zip(tb.geometry, lines, strict=True)]
            ends.append(ends[-1] + tiles[0] * tiles[1] * a.matrix.shape[1])
        tb.results.stall = int(tb.rng.choice([0, 60]))
        await tb.cycles(int(tb.rng.integers(1, 40 + 2 * ends[-1])))
        await tb.abort()
        await tb.wait_done()
        check(jobs, ends, steps.at_abort - begin, tb.slots)
        tb.job(a, tb.part(b, 1))
        await tb.wait_done()


def check(jobs, ends, done, slots):
    """Check that the job which ran ``done`` steps after the start of the first job was aborted.

    ``ends[j]`` steps precede job j. A job in its last round may end without an abort.
    """
    ended = [n for n, job in enumerate(jobs) if job.ended == Status.ABORTED]
    running = next((n for n in range(len(jobs)) if ends[n] <= done < ends[n + 1]), None)
    text = f"after {done} steps job {running} must be aborted, not {ended}"
    assert ended in ([], [running]), text
    if running is not None and ends[running] < done <= ends[running + 1] - slots:
        assert ended, f"job {running} of ends {ends} must be aborted after {done} steps"


@core_test(skip=not _HAS_C)
async def abort_in_preload(tb):
    """A job is aborted before its first step, while C is preloaded."""
    a, b, c = load_operands(tb, tb.config.rows, 2 * tb.config.cols, 5)
    await tb.wait_done()
    for delay in range(4, 12 + tb.slots * tb.config.rows, 9 if is_slow() else 1):
        tb.job(a, b, c, statuses=_ABORTED)
        await tb.wait_sent()
        await tb.cycles(delay)
        await tb.abort()
        tb.job(a, b, c)
        tb.job(a, b)
        await tb.wait_done()


@core_test(skip=not _BF16)
async def abort_while_building_pass(tb):
    """A job is aborted while the pass builder collects tiles of the next jobs."""
    k = 8 + 16 // tb.config.bytes_in
    a, b, _ = load_operands(tb, 3 * tb.config.rows, 4 * tb.config.cols, k)
    await tb.wait_sent()
    for delay in range(0, 24, 8 if is_slow() else 1):
        tb.job(a, tb.part(b, 1), statuses=_ABORTED)
        await tb.wait_sent()
        await tb.cycles(4)
        tb.job(a, b)
        tb.job(tb.part(a, 1), b)
        await tb.wait_sent()
        await tb.cycles(delay)
        await tb.abort()
        await tb.wait_done()


@core_test(skip=not _BF16)
async def abort_in_chain(tb):
    """A job of a chain over a whole pass is aborted: the rest of the chain and later jobs run."""
    steps = StepCounter(tb.dut)
    a, b, _ = load_operands(tb, tb.config.rows, 8 * tb.config.cols, 8)
    await tb.wait_sent()
    each = tb.geometry[B].panels(len(b.matrix)) * a.matrix.shape[1]
    unknown = np.ma.masked_all((len(a.matrix), len(b.matrix)), np.float32)
    for delay in range(4, 40, 18 if is_slow() else 2):
        for aborted_link in range(3):
            begin = steps.count
            for link, flags in enumerate((_KEEP, _ACCUMULATE | _KEEP, _ACCUMULATE)):
                aborted = link == aborted_link
                tb.job(
                    a, b, flags=flags, results=unknown,
                    statuses=_ABORTED if aborted else _DONE,
                )
                if aborted:
                    await tb.wait_sent()
                    while steps.count < begin + link * each:
                        await tb.cycles(1)
                    await tb.cycles(delay)
                    await tb.abort()
            tb.job(a, b)
            await tb.wait_done()
