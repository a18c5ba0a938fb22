"""Right products: of all shapes, of all values, however the streams run."""

import cocotb
import numpy as np

from weft.commands import JobFlag
from weft.sim.bench.core_testbench import A, B, CoreTestbench, is_slow, the_config
from weft.sim.bench.streams import on_icarus

__all__ = ["extremes", "flow", "random_jobs", "rates", "shapes", "short_k", "wraps"]


@cocotb.test()
async def shapes(dut):
    """Whole tiles, ragged ones, one row, one column, one product: one behind the other."""
    s = await CoreTestbench.start(dut)
    rows, cols, depth = s.config.rows, s.config.cols, s.config.depth
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
        m, n, k = s.fit(m, n, k)
        s.multiply(s.random(m, k), s.random(n, k))
    await s.finish()


@cocotb.test()
async def short_k(dut):
    """K of 1 to 20, tiles and jobs back to back: where one sum ends as the next begins."""
    s = await CoreTestbench.start(dut)
    most = min(12 if is_slow() else 20, s.most_k(tiles=2))
    a, b = s.random(s.config.rows + 1, most), s.random(s.config.cols + 1, most)
    for k in range(1, most + 1):
        s.multiply(a[:, :k], b[:, :k])
    # With operands in place, nothing but the array's own pace lies between the jobs.
    a, b = s.place(A, a[:, :1], page=0, gap=0), s.place(B, b[:, :1], page=0, gap=0)
    s.load(a)
    s.load(b)
    for _ in range(6):
        s.job(a, b)
    await s.finish()


@cocotb.test()
async def rates(dut):
    """Tiles and jobs back to back, from the shortest on to those that the array computes alone."""
    s = await CoreTestbench.start(dut)
    for words in range(1, 25, 5 if is_slow() else 1):
        m, n, k = s.fit(3 * s.config.rows, 2 * s.config.cols, words * s.config.depth)
        a, b = s.place(A, s.random(m, k)), s.place(B, s.random(n, k))
        s.load(a)
        s.load(b)
        s.job(a, b)
        s.job(a, b)
    await s.finish()


@cocotb.test()
async def extremes(dut):
    """-128 x -128 over K of 1024 and above, in chains if that does not fit; all other extremes."""
    s = await CoreTestbench.start(dut)
    extremes = s.numbers.EXTREMES

    def full(lines, k, value):
        return np.full((lines, k), value, extremes.dtype)

    most = 48 if is_slow() else 1024
    for k in (most, most + 2 * s.config.depth + 1):
        total = None
        while k:
            part = min(k, s.most_k())
            k -= part
            a, b = full(s.config.rows, part, -128), full(s.config.cols, part, -128)
            flags = JobFlag(0) if total is None else JobFlag.ACCUMULATE
            s.multiply(a, b, flags=flags | (JobFlag.KEEP if k else JobFlag(0)), start=total)
            total = s.numbers.product(a, b, total)
    k = min(s.most_k(tiles=2), 8 if is_slow() else 40)
    for a in (-128, 127):
        for b in (-128, 127):
            s.multiply(full(1, k, a), full(1, k, b))
    for _ in range(4):
        lines = s.config.rows + 1, s.config.cols + 1
        s.multiply(*(s.rng.choice(extremes, (count, k)) for count in lines))
    await s.finish()


@cocotb.test()
async def random_jobs(dut):
    """Shapes and operands as they come, in batches between which all ends."""
    s = await CoreTestbench.start(dut)
    for _ in range(3):
        for _ in range(4 if is_slow() else 20 if on_icarus() else 60):
            send_random(s)
        await s.finish()


@cocotb.test()
@cocotb.parametrize(idle=(0, 50, 90), stall=(0, 50, 90))
async def flow(dut, idle, stall):
    """Commands that come late, results that are taken late."""
    s = await CoreTestbench.start(dut, idle=idle, stall=stall)
    rows, cols, depth = s.config.rows, s.config.cols, s.config.depth
    for _ in range(1 if is_slow() else 2):
        for m, n, k in ((rows + 1, cols, 2 * depth + 1), (1, 1, 1), (rows, cols + 1, 3 * depth)):
            m, n, k = s.fit(m, n, k)
            s.multiply(s.random(m, k), s.random(n, k))
    await s.finish()


# 2^17 cycles are too many for Icarus, which tries the same adders with a larger depth.
@cocotb.test(skip=the_config().dtype != "int8" or on_icarus() and the_config().depth < 4)
async def wraps(dut):
    """A sum beyond 2^31 wraps, as int32 does: -128 x -128 over K of 2^17 and a bit."""
    s = await CoreTestbench.start(dut)
    k = min(s.most_k(), 256 * s.config.depth)
    line = np.full((1, k), -128, np.int8)
    placed = [s.place(side, line, page=0) for side in (A, B)]
    for side in placed:
        s.load(side)
    chain, total = (1 << 17) // k + 1, 0
    for link in range(chain):
        flags = JobFlag.ACCUMULATE if link else JobFlag(0)
        flags |= JobFlag.KEEP if link < chain - 1 else JobFlag(0)
        if s.config.multiplier == "plain":
            s.job(*placed, flags=flags, start=np.full((1, 1), total))
        else:  # the links of a chain must be one behind the other
            s.multiply(line, line, flags=flags, start=np.full((1, 1), total))
        total += k << 14
    await s.finish()


def send_random(s):
    """A product of random operands, of up to 3 x 3 tiles."""
    m = int(s.rng.integers(1, 3 * s.config.rows + 1))
    n = int(s.rng.integers(1, 3 * s.config.cols + 1))
    k = int(s.rng.integers(1, 20 * s.config.depth + 1))
    m, n, k = s.fit(m, n, k)
    s.multiply(s.random(m, k), s.random(n, k))
