"""BF16 products of all kinds of numbers and of many shapes, and many small random products."""

import cocotb
import numpy as np

from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.bench.limits import send_with_epilogue
from weft.sim.bench.preload import random_start
from weft.sim.numbers import KINDS

__all__ = ["kinds", "seeds"]

_BF16 = core_config().data_type.is_float
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
