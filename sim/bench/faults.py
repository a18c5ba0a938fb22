"""Wrong headers, aborts and resets: each has its effect, and the next job is right."""

import cocotb
import numpy as np

from weft.commands import Job, JobFlag, LoadFlag, Status, supported_flags
from weft.registers import REGISTERS
from weft.sim.bench.core_testbench import A, B, CoreTestbench, is_slow
from weft.sim.bench.products import send_random

__all__ = [
    "abort_idle",
    "abort_keep",
    "abort_running",
    "abort_starved",
    "aborts_at_random",
    "dropped",
    "rejected",
    "reset_in_mid_job",
]

_NOTHING = np.empty((0, 0))


@cocotb.test()
async def rejected(dut):
    """A job that cannot be is answered REJECTED, in its turn."""
    s = await CoreTestbench.start(dut, stall=20)
    most = [g.pages * g.edge for g in s.geometry]
    deepest = min(g.words for g in s.geometry) * s.config.depth
    wrong = [(0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0)]
    wrong += [(m, 1, 1, 0) for m in (most[A] + 1, 0xFFFF) if most[A] < m <= 0xFFFF]
    wrong += [(1, n, 1, 0) for n in (most[B] + 1, 0xFFFF) if most[B] < n <= 0xFFFF]
    wrong += [(1, 1, deepest + 1, 0), (1, 1, (1 << 32) - 1, 0)]
    wrong += [(1, 1, 1, 1 << bit) for bit in range(16) if not supported_flags(s.config) >> bit & 1]
    for flag in (JobFlag.KEEP, JobFlag.ACCUMULATE):  # for one pass only
        wrong += [(s.config.rows + 1, 1, 1, flag), (1, s.slots * s.config.cols + 1, 1, flag)]
    wrong += [(1, 1, 1, JobFlag.PRELOAD | JobFlag.ACCUMULATE)] * (s.config.c_words > 0)
    for number, (m, n, k, flags) in enumerate(wrong):
        s.send(Job(m, n, k, 0, 1, 1, 0, 1, 1, tag=s.tag(), flags=flags).pack())
        s.expect(_NOTHING, {Status.REJECTED})
        if number % 4 == 0:
            send_random(s)
    send_random(s)
    await s.finish()


@cocotb.test()
async def dropped(dut):
    """A header that is no command is dropped and counted, and the stream goes on behind it."""
    s = await CoreTestbench.start(dut)
    good = Job(1, 1, 1, 0, 1, 1, 0, 1, 1).pack()
    wrong = [b"\0" * 32, b"\3" + good[1:], b"\xff" * 32, good[:1] + b"\1" + good[2:]]
    for header in wrong:
        s.send(header)
        send_random(s)
    await s.finish()
    errors = await s.register(REGISTERS.index("errors"))
    assert errors == len(wrong), f"register errors must be {len(wrong)}, not {errors}"


@cocotb.test()
async def abort_running(dut):
    """An abort ends the job at work; those behind it run as if nothing had been."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(tiles=2), (16 if is_slow() else 64) * s.config.depth)
    a, b = s.place(A, s.random(2 * s.config.rows, k)), s.place(B, s.random(2 * s.config.cols, k))
    s.load(a)
    s.load(b)
    await s.sent()
    steps = 4 * -(-k // s.config.depth)  # cycles that the job takes at least
    for delay in (4, steps // 3, 2 * steps // 3):
        s.job(a, b, statuses={Status.ABORTED})
        await s.sent()
        await s.cycles(delay)
        await s.abort()
        s.job(a, b)
        send_random(s)
        s.load(a)
        s.load(b)
        await s.finish()
    # Behind it, one is queued already.
    if steps > 2 * 32 // s.config.bytes_in + 8:
        s.job(a, b, statuses={Status.ABORTED})
        s.job(a, b)
        await s.sent()
        await s.abort()
    await s.finish()


@cocotb.test()
async def abort_starved(dut):
    """An abort ends a job whose operands never came, all of them or some."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(tiles=2), 3 * s.config.depth)
    for fed in ((), (A,), (B,)):
        a, b = s.place(A, s.random(s.config.rows + 1, k)), s.place(B, s.random(s.config.cols, k))
        s.job(a, b, feed=(A, B), statuses={Status.ABORTED})
        for side in (a, b):
            if side.side in fed:
                s.load(side, flags=LoadFlag.FEED)
        await s.sent()
        await s.cycles(20)
        await s.abort()
        await s.cycles(5)
        # What it was promised may still come, and harms nobody.
        for side in (a, b):
            if side.side not in fed:
                s.load(side, flags=LoadFlag.FEED)
        s.job(a, b)
        send_random(s)
        await s.finish()


@cocotb.test()
async def abort_keep(dut):
    """A job that keeps its sums says so when it is aborted."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(), (16 if is_slow() else 64) * s.config.depth)
    a, b = s.place(A, s.random(1, k)), s.place(B, s.random(1, k))
    for feed in ((A, B), ()):  # while it waits for operands, then at work
        s.job(a, b, feed=feed, flags=JobFlag.KEEP, statuses={Status.ABORTED})
        await s.sent()
        await s.cycles(4)
        await s.abort()
        s.load(a)
        s.load(b)
        s.job(a, b)
        await s.finish()


@cocotb.test()
async def abort_idle(dut):
    """With no job under way an abort does nothing, be it while operands load."""
    s = await CoreTestbench.start(dut)
    await s.abort()
    await s.cycles(5)
    send_random(s)
    await s.finish()
    await s.abort()
    a, b = s.random(1, s.config.depth), s.random(1, s.config.depth)
    a, b = s.place(A, a), s.place(B, b)
    s.load(a)
    await s.abort()
    s.load(b)
    await s.sent()
    await s.abort()
    s.job(a, b)
    await s.finish()


@cocotb.test()
async def aborts_at_random(dut):
    """Aborts whenever they come: every job ends right or ABORTED, what it sent is right."""
    s = await CoreTestbench.start(dut, stall=50)
    k = min(s.most_k(tiles=2), 4 * s.config.depth)
    a, b = s.place(A, s.random(s.config.rows + 1, k)), s.place(B, s.random(s.config.cols + 1, k))
    s.load(a)
    s.load(b)
    await s.sent()
    for _ in range(8):
        for _ in range(2):
            s.job(a, b, statuses={Status(0), Status.ABORTED})
        await s.cycles(int(s.rng.integers(60)))
        await s.abort()
    await s.finish()
    send_random(s)
    await s.finish()


@cocotb.test()
async def reset_in_mid_job(dut):
    """Wherever a reset comes, what follows is right."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(tiles=2), 8 * s.config.depth)
    for limit in (10, 40, 150) if is_slow() else (10, 40, 40, 150, 150):
        for _ in range(2):
            s.multiply(s.random(s.config.rows + 1, k), s.random(s.config.cols + 1, k))
        await s.cycles(int(s.rng.integers(limit // 4, limit)))
        await s.reset()
        for _ in range(2):
            send_random(s)
        await s.finish()
