"""BF16 products of numbers of every kind and of all shapes, and many small ones at random."""

import cocotb
import numpy as np

from weft.sim.bench.core_testbench import CoreTestbench, is_slow, the_config
from weft.sim.bench.limits import send_finished
from weft.sim.bench.numbers import KINDS
from weft.sim.bench.starts import any_start

__all__ = ["kinds", "seeds"]

_FLOATS = the_config().dtype == "bf16"
_RATES = (0, 50, 90)
# Kind, idle and stall: each with every other, or each at least once.
_ALL = [(kind, idle, stall) for kind in KINDS for idle in _RATES for stall in _RATES]
_SOME = list(zip(KINDS, (0, 60, 0, 60), (0, 0, 60, 60), strict=True))


@cocotb.test(skip=not _FLOATS)
@cocotb.parametrize((("kind", "idle", "stall"), _SOME if is_slow() else _ALL))
async def kinds(dut, kind, idle, stall):
    """Whole and ragged tiles, fewer than a pass takes, as many, and more; K of 1 and of pages."""
    s = await CoreTestbench.start(dut, idle=idle, stall=stall)
    rows, cols = s.config.rows, s.config.cols
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
        m, n, k = s.fit(m, n, k)
        s.multiply(s.numbers.random(s.rng, m, k, kind), s.numbers.random(s.rng, n, k, kind))
    await s.finish()


@cocotb.test(skip=not _FLOATS)
async def seeds(dut):
    """100 small products of any kind, each drawn from a seed of its own, which its name tells."""
    s = await CoreTestbench.start(dut, idle=5, stall=20)
    rows, cols = s.config.rows, s.config.cols
    for seed in range(100):
        s.rng = np.random.default_rng((cocotb.RANDOM_SEED, seed))
        s.label = f" of seed {seed}"
        m, n = int(s.rng.integers(1, 2 * rows + 2)), int(s.rng.integers(1, 3 * cols + 1))
        a, b = s.operands(m, n, int(s.rng.integers(1, 5 if is_slow() else 30)))
        send_finished(s, a, b, any_start(s, a, b))
    await s.finish()
