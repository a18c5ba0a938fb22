"""Dependences of jobs and loads: resident operands, chains, page conflicts, a full job table."""

from weft.commands import HEADER_BYTES, JobFlag, LoadFlag
from weft.geometry import operands
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.bench.streams import number
from weft.sim.scenario import A, B, PlacedOperand

__all__ = ["chains", "conflicts", "page_overlaps", "partial_operands", "queue_full", "resident"]


@core_test(idle=20, stall=20)
async def resident(tb):
    """Many jobs use resident operands, completely or in part."""
    rows, cols, k = tb.config.rows, tb.config.cols, min(tb.max_k(tiles=2), 2 * tb.config.depth + 1)
    b = tb.place(B, tb.random(2 * cols, k))
    tb.load(b)
    for lines in (1, rows, rows + 1, 2 * rows):
        a = tb.place(A, tb.random(lines, k))
        tb.load(a)
        tb.job(a, b)
        tb.job(a, b)
    for _ in range(3):
        a = tb.place(A, tb.random(rows + 1, k))
        tb.job(a, b, feed=(A,))
        tb.load(a, flags=LoadFlag.FEED)


@core_test(idle=20, stall=50)
async def chains(tb):
    """A job continues the sums that the previous job kept; they do not affect other jobs."""
    rows, cols, depth = tb.config.rows, tb.config.cols, tb.config.depth
    for links, m, n in ((2, rows, cols), (3, 1, cols), (4, rows, 1)):
        for link in range(links):
            k = int(tb.rng.integers(1, min(tb.max_k(), 3 * depth) + 1))
            a, b = tb.random(m, k), tb.random(n, k)
            flags = JobFlag.KEEP if link < links - 1 else JobFlag(0)
            flags |= JobFlag.ACCUMULATE if link else JobFlag(0)
            tb.multiply(a, b, flags=flags)
        tb.multiply(tb.random(rows, depth), tb.random(cols, depth))


@core_test(stall=20)
async def partial_operands(tb):
    """Each job of a chain uses some pages of resident operands."""
    page = 16 * tb.config.depth
    k = min(tb.max_k(), (2 if is_slow() else 5) * page - 1)
    lines = tb.random(tb.config.rows, k), tb.random(tb.config.cols, k)
    whole = [tb.place(side, matrix) for side, matrix in enumerate(lines)]
    tb.load(*whole)
    for step in (page, 2 * page):
        for start in range(0, k, step):
            a, b = (
                PlacedOperand(
                    p.side, p.matrix[:, start : start + step], p.page + start // page, 1, 2
                )
                for p in whole
            )
            flags = JobFlag.ACCUMULATE if start else JobFlag(0)
            flags |= JobFlag.KEEP if start + step < k else JobFlag(0)
            tb.job(a, b, flags=flags)
        tb.job(*whole)


@core_test()
async def conflicts(tb):
    """A load waits for the jobs that use its pages."""
    k = min(tb.max_k(tiles=2), (3 if is_slow() else 20) * tb.config.depth)
    placed = {}
    for fed in ((), (A,), (B,), (A, B)):
        for new in ((A, B), (A,), (B,)):
            for side in new:
                matrix = tb.random(2 * tb.geometry[side].edge, k)
                placed[side] = tb.place(side, matrix, page=0, gap=0)
                if side not in fed:
                    tb.load(placed[side])
            feed = [side for side in new if side in fed]
            tb.job(placed[A], placed[B], feed=feed)
            for side in feed:
                tb.load(placed[side], flags=LoadFlag.FEED)
            # Two more jobs: the last one has not started when the next load arrives.
            for _ in range(2):
                tb.job(placed[A], placed[B])
        await tb.wait_done()


# Operands of two pages with one page in common need buffers of four pages.
@core_test(skip=min(g.pages for g in operands(core_config())) < 4)
async def page_overlaps(tb):
    """A load waits for a job that uses only its first or its last page."""
    k = 16 * tb.config.depth + 1
    pairs = ((0, 1), (1, 0), (0, 2), (2, 0))
    for side, other in ((A, B), (B, A)):
        lines = tb.geometry[other].edge * min(8, tb.geometry[other].pages // 2)
        placed = {other: tb.place(other, tb.random(lines, k), gap=0)}
        tb.load(placed[other])
        for first, second in pairs[:2] if is_slow() else pairs:
            for page in (first, second):
                matrix = tb.random(tb.geometry[side].edge, k)
                placed[side] = tb.place(side, matrix, page=page, gap=0)
                tb.load(placed[side])
                for _ in range(2 if is_slow() else 3):
                    tb.job(placed[A], placed[B])
            await tb.wait_done()


@core_test()
async def queue_full(tb):
    """Jobs that exceed the job table wait in the command stream; all end in order."""
    k = tb.config.depth
    a, b = tb.place(A, tb.random(tb.config.rows, k)), tb.place(B, tb.random(tb.config.cols, k))
    tb.load(a, b)
    await tb.wait_sent()
    loaded = tb.commands.taken
    tb.results.stall = 100
    for _ in range(tb.config.jobs + 4):
        tb.job(a, b)
    await tb.cycles(200 + tb.config.jobs * HEADER_BYTES)
    header = max(1, HEADER_BYTES // tb.config.bytes_in)
    most = (tb.config.jobs + 1) * header
    taken = tb.commands.taken - loaded
    assert number(tb.dut.res_valid), "res_valid must not wait for res_ready"
    assert taken <= most, f"at most {most} words of headers may be taken, not {taken}"
    tb.results.stall = 50
