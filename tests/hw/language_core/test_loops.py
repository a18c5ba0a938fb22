"""Nested loops: addresses and flags of each iteration, against loops in Python."""

import itertools
import random

import pytest

from verif.amaranth_bench import pulse, put, simulate
from weft.hw.language_core.loops import LoopNest


@pytest.fixture(scope="module")
def dut():
    return LoopNest(levels=3, count_bits=4, addresses={"x": 8, "y": 10})


def _iterations(counts, starts, steps):
    """Addresses, and the flags first, last and odd of each iteration."""
    for n2, n1, n0 in itertools.product(*map(range, reversed(counts))):
        index = n0, n1, n2
        addresses = [
            sum([start, *(n * step for n, step in zip(index, each, strict=True))]) % size
            for start, each, size in zip(starts, steps, (256, 1024), strict=True)
        ]
        ends = [n == count - 1 for n, count in zip(index, counts, strict=True)]
        last = sum(all(ends[: n + 1]) << n for n in range(3))
        odd = sum((n & 1) << level for level, n in enumerate(index))
        yield *addresses, n0 == 0, last, odd


def test_iterations(dut):
    rng = random.Random(1)
    jobs = [[1, 1, 1], [5, 1, 1], [1, 3, 2], [4, 3, 2], [2, 1, 16]]

    async def bench(ctx):
        for counts in jobs:  # without a reset between them
            starts = rng.randrange(256), rng.randrange(1024)
            steps = [[rng.randrange(size) for _ in range(3)] for size in (256, 1024)]
            put(ctx, dut.further, [count - 1 for count in counts])
            for name, start, each in zip("xy", starts, steps, strict=True):
                put(ctx, getattr(dut, f"{name}_start"), start)
                put(ctx, getattr(dut, f"{name}_steps"), each)
            await pulse(ctx, dut.start)
            for expected in _iterations(counts, starts, steps):
                while rng.random() < 0.3:
                    await ctx.tick()
                ports = dut.busy, dut.x, dut.y, dut.first, dut.last, dut.odd
                assert [ctx.get(port) for port in ports] == [1, *expected]
                await pulse(ctx, dut.advance)
            assert not ctx.get(dut.busy)

    simulate(dut, bench)
