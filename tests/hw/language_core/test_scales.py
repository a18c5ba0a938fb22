"""Scales of heads: reciprocals, roots and parameters, against the golden operations."""

import numpy as np
import pytest

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.golden.language import operations
from weft.hw.language_core.scales import Scales
from weft.language_core.descriptors import Source
from weft.language_core.latencies import SELECTED

PLACE = 1000  # of the table: a parameter group


@pytest.fixture(scope="module")
def dut():
    return Scales(target="generic")


def _scales(dut, source, numbers, table, *, heads=1, addend=0, lane=0):
    """Mantissas and exponents of the heads for each list of numbers, one of each head."""
    entries = np.stack([table.base & 0xFFFF, table.slope.astype(int) & 0xFFFF], -1)
    groups = entries.reshape(-1, 4).tolist()
    found, totals = [], [0]

    async def memory(ctx):
        read = [[0] * 4] * (SELECTED - 1)
        while True:
            _, _, group, head = await ctx.tick().sample(dut.group, dut.total_head)
            read.append(groups[(group - PLACE) % len(groups)])
            put(ctx, dut.parameters, read.pop(0))

    async def heads_of(ctx):
        while True:
            put(ctx, dut.total, totals[min(ctx.get(dut.total_head), len(totals) - 1)])
            await ctx.tick()
            await ctx.delay(1e-8)

    async def bench(ctx):
        put(ctx, dut.source, source)
        put(ctx, dut.place, PLACE)
        put(ctx, dut.heads, heads)
        put(ctx, dut.addend, addend)
        put(ctx, dut.lane, lane)
        for each in numbers:
            if source == Source.ROOT:
                put(ctx, dut.squares, each[0])
            totals[:] = each if source == Source.RECIPROCAL else [0] * heads
            await ticks(ctx, 1)
            await pulse(ctx, dut.start)
            await ticks(ctx, heads - 1 + dut.LATENCY)
            assert ctx.get(dut.done)
            await ticks(ctx, 1)
            assert not ctx.get(dut.busy)
            for head in range(heads):
                put(ctx, dut.head, head)
                await ctx.delay(1e-8)
                found.append((ctx.get(dut.scale), ctx.get(dut.exponent)))

    simulate(dut, bench, background=[memory, heads_of], limit=20_000)
    return found


def test_reciprocals(dut):
    rng = np.random.default_rng(1)
    totals = [1, 2, 3, (1 << 25) - 1, 1 << 24, *rng.integers(1, 1 << rng.integers(1, 25, 11))]
    numbers = [[int(total) for total in totals[n : n + 8]] for n in (0, 8)]
    found = _scales(dut, Source.RECIPROCAL, numbers, operations.reciprocal_table(), heads=8)
    m, e = operations.reciprocal(np.array(totals))
    assert found == [(m, e - 16) for m, e in zip(m.tolist(), e.tolist(), strict=True)]


def test_roots(dut):
    rng = np.random.default_rng(2)
    squares = [0, 1, (1 << 47), *rng.integers(1, 1 << rng.integers(1, 47, 20))]
    table, _ = operations.rsqrt_table(64)
    found = _scales(dut, Source.ROOT, [[int(n)] for n in squares], table, addend=3)
    one = np.array([1])
    for (m, e), number in zip(found, squares, strict=True):
        # With the shift 15 - e, the norm of 1 is the mantissa, half of it, ...
        k = int(operations.leading_one(int(number) + 3))
        assert e == k >> 1
        for x in (1, 2, 1000):
            expected = operations.rms_norm(x * one, int(number) + 3, table, 12 - e)
            assert operations.scale(x, m, 12) == expected[0]


@pytest.mark.parametrize("lane", range(4))
def test_parameters(dut, lane):
    table = operations.Table(np.arange(100, 612), np.arange(512, dtype=np.int16))
    [found, *_] = _scales(dut, Source.PARAMETER, [[0]], table, lane=lane)
    assert found == (([100, 0, 101, 1][lane]), 0)
