"""BF16 sums that start from C, a matrix or one row; and chains of jobs over a whole pass."""

import cocotb
import numpy as np

from weft.commands import HEADER_BYTES, Job, JobFlag, Status
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.bench.limits import EPILOGUES, random_limits
from weft.sim.scenario import A, B, C, PlacedOperand

__all__ = [
    "bf16_chains", "c_conflicts", "load_operands", "loads_ahead", "preloads", "random_start",
    "resident_c", "unused_fields",
]

_BF16 = core_config().data_type.is_float
_HAS_C = core_config().c_words > 0


def random_sums(tb, m, n, sums=None) -> np.ndarray:
    """Random initial sums [m, n]; some of them cancel ``sums``."""
    start = tb.numbers.random_sums(tb.rng, m, n)
    return start if sums is None else np.where(tb.rng.random((m, n)) < 0.3, -sums[:m], start)


def random_start(tb, a, b) -> np.ndarray | None:
    """Random initial sums of a product: none, a row, or a matrix if it fits."""
    ways = [None]
    if _HAS_C:
        ways += [row for row in (1, len(a)) if tb.fits_c(row, len(b))]
    rows = ways[tb.rng.integers(len(ways))]
    return None if rows is None else random_sums(tb, rows, len(b), tb.numbers.product(a, b))


def load_operands(tb, m, n, k, share=1):
    """Load random operands and a C (None without a C buffer); returns all three.

    The shape is reduced to the size of the buffers. C uses at most 1 / ``share`` of its buffer.
    """
    a, b = tb.operands(m, n, k)
    if _HAS_C:
        words = tb.config.c_words // share
        b = b[: words * tb.config.cols]
        a = a[: words // tb.geometry[B].panels(len(b))]
    placed = [tb.place(A, a), tb.place(B, b)]
    if _HAS_C:
        placed.append(tb.place(C, random_sums(tb, len(a), len(b)).T))
    tb.load(*placed)
    return *placed, *[None] * (3 - len(placed))


@cocotb.parametrize((("idle", "stall"), ((0, 0), (50, 0), (0, 50), (80, 80))))
@core_test(skip=not _HAS_C)
async def preloads(tb):
    """Tiles of all shapes, fewer than a pass and more, with a C of a matrix or a row."""
    rows, cols = tb.config.rows, tb.config.cols
    shapes = [
        (1, 1, 1), (rows, cols, 1), (rows + 1, cols + 1, 3), (1, 2 * cols + 1, 2),
        (2 * rows + 1, 1, 2), (rows, 8 * cols, 1), (3 * rows, 3 * cols, 2),
    ]
    if is_slow():  # each shape once, with different flow control
        shapes = shapes[tb.commands.idle > 0 :: 2]
    for m, n, k in shapes:
        a, b = tb.operands(m, n, k)
        for height in (len(a), 1):
            if tb.fits_c(height, len(b)):
                tb.multiply(a, b, random_sums(tb, height, len(b), tb.numbers.product(a, b)))
        tb.multiply(a, b)


@core_test(skip=not _HAS_C, stall=20)
async def resident_c(tb):
    """Many jobs use a resident C: completely, in part, or one row of it for all rows."""
    a, b, c = load_operands(tb, 2 * tb.config.rows, 3 * tb.config.cols, 4)
    (m, n), rows, cols = c.matrix.T.shape, tb.config.rows, tb.config.cols
    for lines, columns in ((m, n), (1, n), (min(m, rows + 1), 1), (m, min(n, cols + 1))):
        part = tb.part(a, lines), tb.part(b, columns)
        tb.job(*part, c)
        tb.job(*part)
        row = int(tb.rng.integers(m))
        tb.job(*part, PlacedOperand(C, c.matrix[:, row : row + 1], c.page + row, c.pitch, c.pages))


@core_test(skip=not _HAS_C)
async def c_conflicts(tb):
    """A load of C waits for jobs that use its words, also only the first or the last one."""
    a, b, c = load_operands(tb, tb.config.rows, 2 * tb.config.cols, 4, share=2)
    m, n = c.matrix.T.shape
    span = m * tb.geometry[B].panels(n)
    pages = ((0, span - 1), (span - 1, 0), (0, 0), (0, span))
    for first, second in pages[:2] if is_slow() else pages:
        for page in (first, second):
            height = m if tb.rng.random() < 0.7 else 1
            c = tb.place(C, random_sums(tb, height, n).T, page=page, gap=m - height)
            tb.load(c)
            for _ in range(2):
                tb.job(a, b, c)
        await tb.wait_done()


@core_test(skip=not _HAS_C)
async def loads_ahead(tb):
    """C of the next job is loaded while a job runs, with a C of its own or without."""
    rows, cols = min(2, tb.config.rows), tb.config.cols
    words = (2 * HEADER_BYTES + rows * 4 * cols) // tb.config.bytes_in + rows  # of a job and a load
    k = min(8 + 2 * words // tb.slots, tb.max_k())
    a, b, _ = load_operands(tb, rows, cols, k, share=2)
    for height in (len(a.matrix), 1, 0):
        place = 0
        if height:
            first = tb.place(C, random_sums(tb, height, cols).T, page=0, gap=0)
            place = first.pages
            tb.load(first)
            await tb.wait_sent()
            one = tb.job(a, b, first)
        else:
            one = send_without_preload(tb, a, b, c=(0, 1, tb.config.c_words))
        second = tb.place(C, random_sums(tb, len(a.matrix), cols).T, page=place, gap=0)
        tb.load(second)
        await tb.wait_sent()
        early = one.ended is None or k * tb.slots < 2 * words
        assert early, "a load of C that no job uses must not wait"
        tb.job(a, b, second)
        await tb.wait_done()


def send_without_preload(tb, a, b, *, c, flags=JobFlag(0)):
    """Send a job without PRELOAD, with the C fields ``c`` (page, pitch and pages) in its header."""
    shape = len(a.matrix), len(b.matrix), a.matrix.shape[1]
    places = (place for x in (a, b) for place in (x.page, x.pitch, x.pages))
    tb.send(Job(*shape, *places, *c, tag=tb.tag(), flags=flags).pack())
    return tb.expect(tb.numbers.product(a.matrix, b.matrix), {Status(0)})


@core_test(skip=not _BF16)
async def unused_fields(tb):
    """Without PRELOAD, BROADCAST and the C fields have no effect."""
    a, b, _ = load_operands(tb, tb.config.rows, tb.config.cols, 3)
    for flags in (JobFlag(0), *[JobFlag.BROADCAST] * _HAS_C):
        for _ in range(2):
            c = (int(x) for x in tb.rng.integers(0, 1 << 16, 3))
            send_without_preload(tb, a, b, c=c, flags=flags)


@core_test(skip=not _BF16, stall=30)
async def bf16_chains(tb):
    """Chains over up to a whole pass, with random gaps between the jobs, from C or from 0."""
    rows, cols = tb.config.rows, tb.config.cols
    for tiles, m in ((1, rows), (3, 1), (8, rows), (7, rows)):
        m, n, _ = tb.fit(m, tiles * cols - int(tb.rng.integers(cols)), 1)
        count, total = int(tb.rng.integers(2, 5)), None
        for link in range(count):
            a, b = tb.operands(m, n, int(tb.rng.integers(1, 5)))
            flags, options = JobFlag(0), {}
            if link:
                flags |= JobFlag.ACCUMULATE
            else:
                options["c"] = total = random_start(tb, a, b)
            sums = tb.numbers.product(a, b, total)
            if link < count - 1:
                flags |= JobFlag.KEEP
            else:
                flags |= EPILOGUES[tb.rng.integers(len(EPILOGUES))]
                if JobFlag.CLAMP in flags:
                    options["parameters"] = random_limits(tb, sums)
            tb.multiply(a, b, flags=flags, **options)
            total = sums
            if tb.rng.random() < 0.7:
                await tb.wait_sent()
                await tb.cycles(int(tb.rng.integers(1, 4 * tb.slots)))
        tb.multiply(*tb.operands(rows, cols + 1, 2))
