"""Jobs and loads that need one another: resident operands, chains, pages in use, a full queue."""

import cocotb

from weft.commands import HEADER_BYTES, JobFlag, LoadFlag
from weft.geometry import operands
from weft.sim.bench.core_testbench import A, B, CoreTestbench, PlacedOperand, is_slow, the_config
from weft.sim.bench.streams import number

__all__ = ["chains", "conflicts", "overlaps", "parts", "queue_full", "resident"]


@cocotb.test()
async def resident(dut):
    """Operands loaded once serve many jobs, whole or in part."""
    s = await CoreTestbench.start(dut, idle=20, stall=20)
    rows, cols, k = s.config.rows, s.config.cols, min(s.most_k(tiles=2), 2 * s.config.depth + 1)
    b = s.place(B, s.random(2 * cols, k))
    s.load(b)
    for lines in (1, rows, rows + 1, 2 * rows):
        a = s.place(A, s.random(lines, k))
        s.load(a)
        s.job(a, b)
        s.job(a, b)
    for _ in range(3):
        a = s.place(A, s.random(rows + 1, k))
        s.job(a, b, feed=(A,))
        s.load(a, flags=LoadFlag.FEED)
    await s.finish()


@cocotb.test()
async def chains(dut):
    """Sums kept by one job are what the next starts from, and no other job knows of them."""
    s = await CoreTestbench.start(dut, idle=20, stall=50)
    rows, cols, depth = s.config.rows, s.config.cols, s.config.depth
    for links, m, n in ((2, rows, cols), (3, 1, cols), (4, rows, 1)):
        total = None
        for link in range(links):
            k = int(s.rng.integers(1, min(s.most_k(), 3 * depth) + 1))
            a, b = s.random(m, k), s.random(n, k)
            flags = JobFlag.KEEP if link < links - 1 else JobFlag(0)
            flags |= JobFlag.ACCUMULATE if link else JobFlag(0)
            s.multiply(a, b, flags=flags, start=total)
            total = s.numbers.product(a, b, total)
        s.multiply(s.random(rows, depth), s.random(cols, depth))
    await s.finish()


@cocotb.test()
async def parts(dut):
    """Operands loaded whole serve a chain of jobs, each of which takes some pages of them."""
    s = await CoreTestbench.start(dut, stall=20)
    page = 16 * s.config.depth
    k = min(s.most_k(), (2 if is_slow() else 5) * page - 1)
    lines = s.random(s.config.rows, k), s.random(s.config.cols, k)
    whole = [s.place(side, matrix) for side, matrix in enumerate(lines)]
    for side in whole:
        s.load(side)
    for step in (page, 2 * page):
        total = None
        for start in range(0, k, step):
            a, b = (
                PlacedOperand(
                    p.side, p.matrix[:, start : start + step], p.page + start // page, 1, 2
                )
                for p in whole
            )
            flags = JobFlag.ACCUMULATE if start else JobFlag(0)
            flags |= JobFlag.KEEP if start + step < k else JobFlag(0)
            s.job(a, b, flags=flags, start=total)
            total = s.numbers.product(a.matrix, b.matrix, total)
        s.job(*whole)
    await s.finish()


@cocotb.test()
async def conflicts(dut):
    """A load of pages that queued jobs use waits for those jobs."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(tiles=2), (3 if is_slow() else 20) * s.config.depth)
    placed = {}
    for fed in ((), (A,), (B,), (A, B)):
        for new in ((A, B), (A,), (B,)):
            for side in new:
                matrix = s.random(2 * s.geometry[side].edge, k)
                placed[side] = s.place(side, matrix, page=0, gap=0)
                if side not in fed:
                    s.load(placed[side])
            feed = [side for side in new if side in fed]
            s.job(placed[A], placed[B], feed=feed)
            for side in feed:
                s.load(placed[side], flags=LoadFlag.FEED)
            # Twice more: as the next load comes, the last of them has not begun.
            for _ in range(2):
                s.job(placed[A], placed[B])
        await s.finish()


# Operands of two pages, one of them shared, take buffers of four.
@cocotb.test(skip=min(g.pages for g in operands(the_config())) < 4)
async def overlaps(dut):
    """So does a load that shares but one page with a job, the first or the last of its own."""
    s = await CoreTestbench.start(dut)
    k = 16 * s.config.depth + 1
    pairs = ((0, 1), (1, 0), (0, 2), (2, 0))
    for side, other in ((A, B), (B, A)):
        lines = s.geometry[other].edge * min(8, s.geometry[other].pages // 2)
        placed = {other: s.place(other, s.random(lines, k), gap=0)}
        s.load(placed[other])
        for first, second in pairs[:2] if is_slow() else pairs:
            for page in (first, second):
                matrix = s.random(s.geometry[side].edge, k)
                placed[side] = s.place(side, matrix, page=page, gap=0)
                s.load(placed[side])
                for _ in range(2 if is_slow() else 3):
                    s.job(placed[A], placed[B])
            await s.finish()


@cocotb.test()
async def queue_full(dut):
    """More jobs than the table holds wait in the stream, and all are answered in order."""
    s = await CoreTestbench.start(dut)
    k = s.config.depth
    a, b = s.place(A, s.random(s.config.rows, k)), s.place(B, s.random(s.config.cols, k))
    s.load(a)
    s.load(b)
    await s.sent()
    loaded = s.commands.taken
    s.results.stall = 100
    for _ in range(s.config.jobs + 4):
        s.job(a, b)
    await s.cycles(200 + s.config.jobs * HEADER_BYTES)
    header = max(1, HEADER_BYTES // s.config.bytes_in)
    most = (s.config.jobs + 1) * header
    taken = s.commands.taken - loaded
    assert number(dut.res_valid), "res_valid must not wait for res_ready"
    assert taken <= most, f"at most {most} words of headers may be taken by then, not {taken}"
    s.results.stall = 50
    await s.finish()
