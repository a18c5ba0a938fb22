"""BF16: products of all kinds of numbers, sums that start from C, and the epilogue."""

import cocotb
import numpy as np

from weft.commands import HEADER_BYTES, Job, JobFlag, Status
from weft.host.packing import LIMITS
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.numbers import KINDS
from weft.sim.scenario import A, B, C, PlacedOperand

__all__ = [
    "EPILOGUES", "bf16_chains", "bf16_epilogues", "c_conflicts", "kinds", "limit_conflicts",
    "load_operands", "loads_ahead", "preloads", "random_start", "resident_c", "seeds",
    "single_tiles", "unused_fields",
]


_CLAMPS = core_config().activation == "clamp"
EPILOGUES = [JobFlag(0), JobFlag.ROUND]
if _CLAMPS:
    EPILOGUES += [JobFlag.CLAMP, JobFlag.CLAMP | JobFlag.ROUND]
_EXTREMES = np.array([0x0, 0x3F800000, 0x7F800000, 0x7F7FFFFF, 0x800000, 0x12345, 0x1], np.uint32)
_EXTREMES = np.concatenate([_EXTREMES, _EXTREMES | 1 << 31]).view(np.float32)


def random_limits(tb, sums) -> np.ndarray:
    """Random limits of columns: close to ``sums`` [M, N], midway between bfloat16, or any."""
    n, zero = sums.shape[1], np.float32(0)
    found = sums[tb.rng.integers(len(sums), size=(n, 2)), np.arange(n)[:, None]]
    middle = found.view(np.uint32) & 0xFFFF0000 | 0x8000
    kinds = [
        found,
        middle.view(np.float32),
        np.nextafter(found, zero),  # just beyond a sum
        np.repeat(found[:, :1], 2, axis=1),
        tb.rng.choice(_EXTREMES, (n, 2)),
        tb.numbers.random_sums(tb.rng, n, 2),
    ]
    limits = np.choose(tb.rng.integers(len(kinds), size=(n, 1)), kinds)
    limits = np.sort(np.where(np.isnan(limits), np.copysign(np.float32(np.inf), limits), limits))
    return np.array([tuple(line) for line in limits], LIMITS)


def send_with_epilogue(tb, a, b, c=None, flags=None):
    """Send a product with the epilogue of ``flags``; None: a random one."""
    if flags is None:
        flags = EPILOGUES[tb.rng.integers(len(EPILOGUES))]
    limits = random_limits(tb, tb.numbers.product(a, b, c))
    parameters = limits if JobFlag.CLAMP in flags else None
    tb.multiply(a, b, c, parameters=parameters, flags=flags)


_FLOW = ((0, 0), (60, 60)) if is_slow() else [(i, o) for i in (0, 50, 90) for o in (0, 50, 90)]


@cocotb.parametrize((("idle", "stall"), _FLOW))
@core_test(skip=not core_config().data_type.is_float)
async def bf16_epilogues(tb):
    """All epilogues in random order; full and partial tiles."""
    rows, cols = tb.config.rows, tb.config.cols
    for m, n, k in ((rows + 1, cols + 1, 2), (1, 1, 1), (rows, 3 * cols, 3)):
        for flags in tb.rng.permutation(EPILOGUES):
            send_with_epilogue(tb, *tb.operands(m, n, k), flags=JobFlag(int(flags)))


@core_test(skip=not core_config().data_type.is_float, stall=20)
async def single_tiles(tb):
    """Jobs of one tile on resident operands, back to back, with all pairs of epilogues."""
    shapes = (1, 1), (tb.config.rows, tb.config.cols)
    for m, n in shapes[:1] if is_slow() else shapes:
        a, b = tb.operands(m, n, 1)
        limits = random_limits(tb, tb.numbers.product(a, b))
        a, b = tb.place(A, a), tb.place(B, b)
        tb.load(a, b)
        if _CLAMPS:
            tb.load_parameters(b, limits)
        for first in EPILOGUES:
            for flags in (first, *EPILOGUES):
                tb.job(a, b, flags=flags)


@core_test(skip=not _CLAMPS, stall=50)
async def limit_conflicts(tb):
    """A load of limits waits for the jobs that use its pages, and only for them."""
    m, n, k = tb.fit(2 * tb.config.rows, 2 * tb.config.cols, 3)
    a, b = tb.operands(m, n, k)
    sums, a = tb.numbers.product(a, b), tb.place(A, a)
    tb.load(a)
    places = [tb.place(B, b, page=0, gap=0)]
    span = places[0].pages
    if 2 * span <= tb.geometry[B].pages:
        places.append(tb.place(B, b, page=span, gap=0))
    tb.load(*places)
    for turn in range(6):
        place = places[turn // 2 % len(places)]
        tb.load_parameters(place, random_limits(tb, sums))
        for _ in range(int(tb.rng.integers(1, 3))):
            tb.job(a, place, flags=EPILOGUES[2 + turn % 2])


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


_RATES = (0, 50, 90)
# Kind, idle and stall: all combinations; in a slow simulation each kind once.
_ALL = [(kind, idle, stall) for kind in KINDS for idle in _RATES for stall in _RATES]
_SOME = list(zip(KINDS, (0, 60, 0, 60), (0, 0, 60, 60), strict=True))


@cocotb.parametrize((("kind", "idle", "stall"), _SOME if is_slow() else _ALL))
@core_test(skip=not _BF16)
async def kinds(tb, kind):
    """Full and partial tiles; parts of a pass, one pass, several passes; K of 1 to three pages."""
    rows, cols = tb.config.rows, tb.config.cols
    for m, n, k in (
        (1, 1, 1),
        (rows, cols, 1),
        (rows, 2 * cols, 3),
        (rows + 1, cols, 2),
        (rows, cols + 1, 2),
        (1, 3 * cols - 1, 4),
        (3 * rows - 1, 1, 4),
        (2 * rows, 4 * cols, 1),
        (3 * rows, 3 * cols, 2),
        (1, 17 * cols, 1),
        (rows, cols, 2 * 16 + 1),
    ):
        m, n, k = tb.fit(m, n, k)
        tb.multiply(tb.numbers.random(tb.rng, m, k, kind), tb.numbers.random(tb.rng, n, k, kind))


@core_test(skip=not _BF16, idle=5, stall=20)
async def seeds(tb):
    """100 small random products; each has its own seed, which messages name."""
    rows, cols = tb.config.rows, tb.config.cols
    for seed in range(100):
        tb.rng = np.random.default_rng((cocotb.RANDOM_SEED, seed))
        tb.label = f" of seed {seed}"
        m, n = int(tb.rng.integers(1, 2 * rows + 2)), int(tb.rng.integers(1, 3 * cols + 1))
        a, b = tb.operands(m, n, int(tb.rng.integers(1, 5 if is_slow() else 30)))
        send_with_epilogue(tb, a, b, random_start(tb, a, b))
