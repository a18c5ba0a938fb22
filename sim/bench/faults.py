"""Invalid headers, aborts and resets: each has its effect, and the next job is correct."""

from weft.commands import Job, JobFlag, LoadFlag, Status, supported_flags
from weft.registers import REGISTERS
from weft.sim.bench.core_testbench import core_test, is_slow
from weft.sim.bench.products import send_random
from weft.sim.scenario import A, B

__all__ = [
    "abort_idle",
    "abort_keep",
    "abort_running",
    "abort_starved",
    "aborts_at_random",
    "bad_headers",
    "bad_jobs",
    "reset_in_mid_job",
]


@core_test(stall=20)
async def bad_jobs(tb):
    """An invalid job ends with REJECTED, in order."""
    limits = [g.pages * g.edge for g in tb.geometry]
    deepest = min(g.words for g in tb.geometry) * tb.config.depth
    bad = [(0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0)]
    bad += [(m, 1, 1, 0) for m in (limits[A] + 1, 0xFFFF) if limits[A] < m <= 0xFFFF]
    bad += [(1, n, 1, 0) for n in (limits[B] + 1, 0xFFFF) if limits[B] < n <= 0xFFFF]
    bad += [(1, 1, deepest + 1, 0), (1, 1, (1 << 32) - 1, 0)]
    bad += [(1, 1, 1, 1 << bit) for bit in range(16) if not supported_flags(tb.config) >> bit & 1]
    for flag in (JobFlag.KEEP, JobFlag.ACCUMULATE):  # allowed only for jobs of one pass
        bad += [(tb.config.rows + 1, 1, 1, flag), (1, tb.slots * tb.config.cols + 1, 1, flag)]
    bad += [(1, 1, 1, JobFlag.PRELOAD | JobFlag.ACCUMULATE)] * (tb.config.c_words > 0)
    for number, (m, n, k, flags) in enumerate(bad):
        tb.reject(m=m, n=n, k=k, flags=flags)
        if number % 4 == 0:
            send_random(tb)
    send_random(tb)


@core_test()
async def bad_headers(tb):
    """An invalid header is dropped and counted; the command stream continues after it."""
    good = Job(1, 1, 1, 0, 1, 1, 0, 1, 1).pack()
    bad = [b"\0" * 32, b"\3" + good[1:], b"\xff" * 32, good[:1] + b"\1" + good[2:]]
    for header in bad:
        tb.send(header)
        send_random(tb)
    await tb.wait_done()
    errors = await tb.register(REGISTERS.index("errors"))
    assert errors == len(bad), f"register errors must be {len(bad)}, not {errors}"


@core_test()
async def abort_running(tb):
    """An abort ends the running job; later jobs are not affected."""
    k = min(tb.max_k(tiles=2), (16 if is_slow() else 64) * tb.config.depth)
    a = tb.place(A, tb.random(2 * tb.config.rows, k))
    b = tb.place(B, tb.random(2 * tb.config.cols, k))
    tb.load(a, b)
    await tb.wait_sent()
    steps = 4 * -(-k // tb.config.depth)  # minimum cycles of the job
    for delay in (4, steps // 3, 2 * steps // 3):
        tb.job(a, b, statuses={Status.ABORTED})
        await tb.wait_sent()
        await tb.cycles(delay)
        await tb.abort()
        tb.job(a, b)
        send_random(tb)
        tb.load(a, b)
        await tb.wait_done()
    # An abort while the next job is in the job table.
    if steps > 2 * 32 // tb.config.bytes_in + 8:
        tb.job(a, b, statuses={Status.ABORTED})
        tb.job(a, b)
        await tb.wait_sent()
        await tb.abort()


@core_test()
async def abort_starved(tb):
    """An abort ends a job that waits for all or some of its operands."""
    k = min(tb.max_k(tiles=2), 3 * tb.config.depth)
    for fed in ((), (A,), (B,)):
        a = tb.place(A, tb.random(tb.config.rows + 1, k))
        b = tb.place(B, tb.random(tb.config.cols, k))
        tb.job(a, b, feed=(A, B), statuses={Status.ABORTED})
        for side in (a, b):
            if side.side in fed:
                tb.load(side, flags=LoadFlag.FEED)
        await tb.wait_sent()
        await tb.cycles(20)
        await tb.abort()
        await tb.cycles(5)
        # The loads of the aborted job may still come; they have no effect on other jobs.
        for side in (a, b):
            if side.side not in fed:
                tb.load(side, flags=LoadFlag.FEED)
        tb.job(a, b)
        send_random(tb)
        await tb.wait_done()


@core_test()
async def abort_keep(tb):
    """A job that keeps its sums ends with ABORTED when it is aborted."""
    k = min(tb.max_k(), (16 if is_slow() else 64) * tb.config.depth)
    a, b = tb.place(A, tb.random(1, k)), tb.place(B, tb.random(1, k))
    for feed in ((A, B), ()):  # while it waits for operands, and while it runs
        tb.job(a, b, feed=feed, flags=JobFlag.KEEP, statuses={Status.ABORTED})
        await tb.wait_sent()
        await tb.cycles(4)
        await tb.abort()
        tb.load(a, b)
        tb.job(a, b)
        await tb.wait_done()


@core_test()
async def abort_idle(tb):
    """Without a job an abort has no effect, also while operands are loaded."""
    await tb.abort()
    await tb.cycles(5)
    send_random(tb)
    await tb.wait_done()
    await tb.abort()
    a, b = tb.random(1, tb.config.depth), tb.random(1, tb.config.depth)
    a, b = tb.place(A, a), tb.place(B, b)
    tb.load(a)
    await tb.abort()
    tb.load(b)
    await tb.wait_sent()
    await tb.abort()
    tb.job(a, b)


@core_test(stall=50)
async def aborts_at_random(tb):
    """Aborts at random times: every job ends normally or with ABORTED; its results are correct."""
    k = min(tb.max_k(tiles=2), 4 * tb.config.depth)
    a = tb.place(A, tb.random(tb.config.rows + 1, k))
    b = tb.place(B, tb.random(tb.config.cols + 1, k))
    tb.load(a, b)
    await tb.wait_sent()
    for _ in range(8):
        for _ in range(2):
            tb.job(a, b, statuses={Status(0), Status.ABORTED})
        await tb.cycles(int(tb.rng.integers(60)))
        await tb.abort()
    await tb.wait_done()
    send_random(tb)


@core_test()
async def reset_in_mid_job(tb):
    """Resets at random times: later jobs are correct."""
    k = min(tb.max_k(tiles=2), 8 * tb.config.depth)
    for limit in (10, 40, 150) if is_slow() else (10, 40, 40, 150, 150):
        for _ in range(2):
            tb.multiply(tb.random(tb.config.rows + 1, k), tb.random(tb.config.cols + 1, k))
        await tb.cycles(int(tb.rng.integers(limit // 4, limit)))
        await tb.reset()
        for _ in range(2):
            send_random(tb)
        await tb.wait_done()
