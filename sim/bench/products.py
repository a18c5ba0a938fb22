"""Products of all shapes and values, with idle and stall cycles."""

import cocotb
import numpy as np

from weft.commands import JobFlag
from weft.sim.bench.core_testbench import core_config, core_test, is_slow
from weft.sim.bench.streams import on_icarus
from weft.sim.scenario import A, B

__all__ = ["extremes", "flow", "random_jobs", "rates", "shapes", "short_k", "wraps"]

_IS_INT8 = core_config().data_type.a.name == "int8"


@core_test()
async def shapes(tb):
    """Full and partial tiles, single rows, columns and products, back to back."""
    rows, cols, depth = tb.config.rows, tb.config.cols, tb.config.depth
    some = 3 * depth + 1
    for m, n, k in (
        (1, 1, 1),
        (rows, cols, depth),
        (2 * rows, 2 * cols, 4 * depth),
        (rows + 1, cols + 1, some),
        (2 * rows - 1, 2 * cols + 1, some),
        (1, 2 * cols + 1, 5),
        (2 * rows + 1, 1, 5),
        (2 * rows, cols, 1),
        (1, 1, 16 * depth),
        (rows, 1, 16 * depth + 1),
        (1, cols, 2 * depth),
    ):
        tb.multiply(*tb.operands(m, n, k))


@core_test()
async def short_k(tb):
    """K of 1 to 20, tiles and jobs back to back: a sum ends as the next one starts."""
    most = min(12 if is_slow() else 20, tb.max_k(tiles=2))
    a, b = tb.random(tb.config.rows + 1, most), tb.random(tb.config.cols + 1, most)
    for k in range(1, most + 1):
        tb.multiply(a[:, :k], b[:, :k])
    # With resident operands the jobs follow each other at the rate of the array.
    a, b = tb.place(A, a[:, :1], page=0, gap=0), tb.place(B, b[:, :1], page=0, gap=0)
    tb.load(a, b)
    for _ in range(6):
        tb.job(a, b)


@core_test()
async def rates(tb):
    """Tiles and jobs back to back, from the smallest K up to where the array limits the rate."""
    for words in range(1, 25, 5 if on_icarus() else 1):
        m, n, k = tb.fit(3 * tb.config.rows, 2 * tb.config.cols, words * tb.config.depth)
        a, b = tb.place(A, tb.random(m, k)), tb.place(B, tb.random(n, k))
        tb.load(a, b)
        tb.job(a, b)
        tb.job(a, b)


@core_test()
async def extremes(tb):
    """-128 x -128 over K of 1024 and more, in chains if necessary; all other extreme values."""
    extremes = tb.numbers.EXTREMES

    def full(lines, k, value):
        return np.full((lines, k), value, extremes.dtype)

    most = 48 if is_slow() else 1024
    for k in (most, most + 2 * tb.config.depth + 1):
        flags = JobFlag(0)
        while k:
            part = min(k, tb.max_k())
            k -= part
            a, b = full(tb.config.rows, part, -128), full(tb.config.cols, part, -128)
            tb.multiply(a, b, flags=flags | (JobFlag.KEEP if k else JobFlag(0)))
            flags = JobFlag.ACCUMULATE
    k = min(tb.max_k(tiles=2), 8 if is_slow() else 40)
    for a in (-128, 127):
        for b in (-128, 127):
            tb.multiply(full(1, k, a), full(1, k, b))
    for _ in range(4):
        lines = tb.config.rows + 1, tb.config.cols + 1
        tb.multiply(*(tb.rng.choice(extremes, (count, k)) for count in lines))


@core_test()
async def random_jobs(tb):
    """Batches of random jobs; the core is idle between batches."""
    for _ in range(3):
        for _ in range(4 if is_slow() else 20 if on_icarus() else 60):
            send_random(tb)
        await tb.wait_done()


@cocotb.parametrize(idle=(0, 50, 90), stall=(0, 50, 90))
@core_test()
async def flow(tb):
    """Products with idle and stall cycles."""
    rows, cols, depth = tb.config.rows, tb.config.cols, tb.config.depth
    for _ in range(1 if is_slow() else 2):
        for m, n, k in ((rows + 1, cols, 2 * depth + 1), (1, 1, 1), (rows, cols + 1, 3 * depth)):
            tb.multiply(*tb.operands(m, n, k))


# 2^17 cycles take too long on Icarus; with a larger depth it tests the same adders.
@core_test(skip=not _IS_INT8 or on_icarus() and core_config().depth < 4)
async def wraps(tb):
    """A sum above 2^31 wraps like int32: -128 x -128 over K of more than 2^17."""
    k = min(tb.max_k(), 256 * tb.config.depth)
    line = np.full((1, k), -128, np.int8)
    placed = [tb.place(side, line, page=0) for side in (A, B)]
    tb.load(*placed)
    chain = (1 << 17) // k + 1
    for link in range(chain):
        flags = JobFlag.ACCUMULATE if link else JobFlag(0)
        flags |= JobFlag.KEEP if link < chain - 1 else JobFlag(0)
        if tb.config.multiplier == "plain":
            tb.job(*placed, flags=flags)
        else:  # the jobs of a chain must follow each other
            tb.multiply(line, line, flags=flags)


def send_random(tb):
    """Send a random product of up to 3 x 3 tiles."""
    m = int(tb.rng.integers(1, 3 * tb.config.rows + 1))
    n = int(tb.rng.integers(1, 3 * tb.config.cols + 1))
    k = int(tb.rng.integers(1, 20 * tb.config.depth + 1))
    tb.multiply(*tb.operands(m, n, k))
