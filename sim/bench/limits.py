"""The BF16 epilogue: clamp to the limits of each column, and rounding to bfloat16."""

import cocotb
import numpy as np

from weft.commands import JobFlag
from weft.host.packing import LIMITS
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.scenario import A, B

__all__ = ["EPILOGUES", "bf16_epilogues", "single_tiles", "limit_conflicts"]

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
