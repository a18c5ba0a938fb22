"""Tests of the core at its streams, in cocotb: make sim. `first` is the one that WAVES=1 draws."""

import numpy as np

from weft.sim.bench.core_testbench import core_test


@core_test()
async def first(tb):
    """A product with random operands; the testbench compares it with the golden model."""
    tb.multiply(*tb.operands(2 * tb.config.rows, tb.config.cols, 3 * tb.config.depth))


@core_test()
async def ones(tb):
    """A product of your own: A[m, k], and B with a row for each column of the result."""
    a = np.ones((3, 5), tb.numbers.EXTREMES.dtype)
    b = np.ones((4, 5), tb.numbers.EXTREMES.dtype)
    tb.multiply(a, b)
