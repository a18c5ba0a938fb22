"""BF16 sums that start from C, whole or one row of it; and chains of jobs over a whole pass."""

import cocotb
import numpy as np

from weft.commands import HEADER_BYTES, Job, JobFlag, Status
from weft.sim.bench.core_testbench import A, B, C, CoreTestbench, PlacedOperand, is_slow, the_config
from weft.sim.bench.limits import FINISHES, finishing
from weft.sim.bench.limits import draw as draw_limits

__all__ = ["ahead", "any_start", "awaited", "held", "ignored", "links", "starts"]

_FLOATS = the_config().dtype == "bf16"
_STARTS = the_config().c_words > 0


def draw(s, m, n, sums=None) -> np.ndarray:
    """Sums [m, n] to start from; some of them such as cancel ``sums``."""
    start = s.numbers.starts(s.rng, m, n)
    return start if sums is None else np.where(s.rng.random((m, n)) < 0.3, -sums[:m], start)


def any_start(s, a, b) -> np.ndarray | None:
    """What the sums of a product might start from: nothing, a row, or a matrix if that fits."""
    ways = [None]
    if _STARTS:
        ways += [row for row in (1, len(a)) if s.fits_start(row, len(b))]
    rows = ways[s.rng.integers(len(ways))]
    return None if rows is None else draw(s, rows, len(b), s.numbers.product(a, b))


def place_all(s, m, n, k, share=1):
    """Operands and a C (None where there is no buffer for it), loaded.

    Of this shape, or the largest within it that fits: with C in one part of its buffer, of
    ``share`` parts.
    """
    a, b = s.operands(m, n, k)
    if _STARTS:
        words = s.config.c_words // share
        b = b[: words * s.config.cols]
        a = a[: words // s.geometry[B].panels(len(b))]
    placed = [s.place(A, a), s.place(B, b)]
    if _STARTS:
        placed.append(s.place(C, draw(s, len(a), len(b)).T))
    for one in placed:
        s.load(one)
    return *placed, *[None] * (3 - len(placed))


@cocotb.test(skip=not _STARTS)
@cocotb.parametrize((("idle", "stall"), ((0, 0), (50, 0), (0, 50), (80, 80))))
async def starts(dut, idle, stall):
    """Tiles of all shapes, fewer than a pass takes and more; whole matrices and single rows."""
    s = await CoreTestbench.start(dut, idle=idle, stall=stall)
    rows, cols = s.config.rows, s.config.cols
    shapes = [
        (1, 1, 1), (rows, cols, 1), (rows + 1, cols + 1, 3), (1, 2 * cols + 1, 2),
        (2 * rows + 1, 1, 2), (rows, 8 * cols, 1), (3 * rows, 3 * cols, 2),
    ]
    if is_slow():  # each once, with one flow or another
        shapes = shapes[idle > 0 :: 2]
    for m, n, k in shapes:
        a, b = s.operands(m, n, k)
        for height in (len(a), 1):
            if s.fits_start(height, len(b)):
                s.multiply(a, b, draw(s, height, len(b), s.numbers.product(a, b)))
        s.multiply(a, b)
    await s.finish()


@cocotb.test(skip=not _STARTS)
async def held(dut):
    """A C loaded once serves many jobs: whole, in part, or one row of it for all rows."""
    s = await CoreTestbench.start(dut, stall=20)
    a, b, c = place_all(s, 2 * s.config.rows, 3 * s.config.cols, 4)
    (m, n), rows, cols = c.matrix.T.shape, s.config.rows, s.config.cols
    for lines, columns in ((m, n), (1, n), (min(m, rows + 1), 1), (m, min(n, cols + 1))):
        part = s.part(a, lines), s.part(b, columns)
        s.job(*part, c)
        s.job(*part)
        row = int(s.rng.integers(m))
        s.job(*part, PlacedOperand(C, c.matrix[:, row : row + 1], c.page + row, c.pitch, c.pages))
    await s.finish()


@cocotb.test(skip=not _STARTS)
async def awaited(dut):
    """A load of words of C that jobs use waits for them, though it be for the first or the last."""
    s = await CoreTestbench.start(dut)
    a, b, c = place_all(s, s.config.rows, 2 * s.config.cols, 4, share=2)
    m, n = c.matrix.T.shape
    span = m * s.geometry[B].panels(n)
    pages = ((0, span - 1), (span - 1, 0), (0, 0), (0, span))
    for first, second in pages[:2] if is_slow() else pages:
        for page in (first, second):
            height = m if s.rng.random() < 0.7 else 1
            c = s.place(C, draw(s, height, n).T, page=page, gap=m - height)
            s.load(c)
            for _ in range(2):
                s.job(a, b, c)
        await s.finish()


@cocotb.test(skip=not _STARTS)
async def ahead(dut):
    """C of the next job loads while a job runs: from a C of its own, or from none."""
    s = await CoreTestbench.start(dut)
    rows, cols = min(2, s.config.rows), s.config.cols
    words = (2 * HEADER_BYTES + rows * 4 * cols) // s.config.bytes_in + rows  # of job and load
    k = min(8 + 2 * words // s.slots, s.most_k())
    a, b, _ = place_all(s, rows, cols, k, share=2)
    for height in (len(a.matrix), 1, 0):
        place = 0
        if height:
            first = s.place(C, draw(s, height, cols).T, page=0, gap=0)
            place = first.pages
            s.load(first)
            await s.sent()
            one = s.job(a, b, first)
        else:
            one = send_without(s, a, b, c=(0, 1, s.config.c_words))
        second = s.place(C, draw(s, len(a.matrix), cols).T, page=place, gap=0)
        s.load(second)
        await s.sent()
        early = one.ended is None or k * s.slots < 2 * words
        assert early, "a load of words of C that no job uses must not wait"
        s.job(a, b, second)
        await s.finish()


def send_without(s, a, b, *, c, flags=JobFlag(0)):
    """A job that does not start from the ``c`` of its header: page, pitch and pages."""
    shape = len(a.matrix), len(b.matrix), a.matrix.shape[1]
    places = (place for x in (a, b) for place in (x.page, x.pitch, x.pages))
    s.send(Job(*shape, *places, *c, tag=s.tag(), flags=flags).pack())
    return s.expect(s.numbers.product(a.matrix, b.matrix), {Status(0)})


@cocotb.test(skip=not _FLOATS)
async def ignored(dut):
    """Without PRELOAD, nobody looks at BROADCAST or at where C might be."""
    s = await CoreTestbench.start(dut)
    a, b, _ = place_all(s, s.config.rows, s.config.cols, 3)
    for flags in (JobFlag(0), *[JobFlag.BROADCAST] * _STARTS):
        for _ in range(2):
            c = (int(x) for x in s.rng.integers(0, 1 << 16, 3))
            send_without(s, a, b, c=c, flags=flags)
    await s.finish()


@cocotb.test(skip=not _FLOATS)
async def links(dut):
    """Chains over as many tiles as a pass has, with any gap between the jobs, from C or from 0."""
    s = await CoreTestbench.start(dut, stall=30)
    rows, cols = s.config.rows, s.config.cols
    for tiles, m in ((1, rows), (3, 1), (8, rows), (7, rows)):
        m, n, _ = s.fit(m, tiles * cols - int(s.rng.integers(cols)), 1)
        count, total = int(s.rng.integers(2, 5)), None
        for link in range(count):
            a, b = s.operands(m, n, int(s.rng.integers(1, 5)))
            flags, options = JobFlag(0), {}
            if link:
                flags |= JobFlag.ACCUMULATE
            else:
                options["c"] = total = any_start(s, a, b)
            sums = s.numbers.product(a, b, total)
            if link < count - 1:
                flags |= JobFlag.KEEP
            else:
                flags |= FINISHES[s.rng.integers(len(FINISHES))]
                limits = draw_limits(s, sums)
                options |= finishing(s, flags, limits)
                if JobFlag.CLAMP in flags:
                    options["parameters"] = limits
            s.multiply(a, b, **{"flags": flags, "start": total} | options)
            total = sums
            if s.rng.random() < 0.7:
                await s.sent()
                await s.cycles(int(s.rng.integers(1, 4 * s.slots)))
        s.multiply(*s.operands(rows, cols + 1, 2))
    await s.finish()
