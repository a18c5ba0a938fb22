"""SOFTMAX: products and reciprocals to the bit, whole jobs, cycles, accesses beyond the window."""

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from network_core_jobs import MapPlace, NetworkCoreImage
from network_core_output import network_core_of
from network_core_softmax import softmax_job, softmax_rows
from side_port import hardware_fields
from tiers import quick
from unit_bench import UnitBench

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.hw.network_core.output.softmax import Reciprocal, Softmax
from weft.models.kernels.fixed_point import high_mul, reciprocal
from weft.network_core.descriptors import split

CHIP = network_core_of(2, 4, 4, 2, softmax=True)
SLOW = network_core_of(2, 4, 8, 2, scale_cycles=8, softmax=True)
ROW = network_core_of(1, 4, 1, 1, scale_cycles=2, read_vectors=1, softmax=True)
SERIAL = network_core_of(2, 4, 4, 1, target="ice40up", scale_cycles=8, softmax=True)


def test_reciprocals():
    dut, rng = Reciprocal(), random.Random(2)
    totals = [1 << 19, (1 << 19) + 1, (1 << 31) - 1, 1 << 30, (1 << 30) - 1]
    totals += [(1 << 28) - 1, 1 << 28, (1 << 28) + 1]  # results vanish from the second one on
    totals += [rng.randrange(1 << rng.randint(19, 30), 1 << 31) for _ in range(25)]

    async def multiply(ctx):
        """Any latency will do."""
        while True:
            [b] = await ctx.tick().sample(dut.b).until(dut.multiply)
            await ticks(ctx, rng.randint(1, 3))
            put(ctx, dut.product, int(high_mul(ctx.get(dut.a), b)))
            await pulse(ctx, dut.product_done)

    async def total_of(ctx, total):
        """Add terms, and wait."""
        await pulse(ctx, dut.clear)
        terms = sorted(rng.randrange(total + 1) for _ in range(3))
        for term in (b - a for a, b in pairwise([0, *terms, total])):
            carry = int(term > 0 and rng.random() < 0.5)
            put(ctx, dut.term, term - carry)
            put(ctx, dut.carry, carry)
            await pulse(ctx, dut.add)
        put(ctx, dut.term, rng.randrange(1 << 31))
        await ticks(ctx, rng.randrange(2))

    async def bench(ctx):
        for total in totals:
            await total_of(ctx, total)
            await pulse(ctx, dut.start)
            assert not ctx.get(dut.ready)
            await ctx.tick().until(dut.ready)
            await ticks(ctx, 3)  # all of them stay
            expected, shift = reciprocal(total, 12)
            assert ctx.get(dut.a) == expected
            assert ctx.get(dut.vanishes) == (total >= 1 << 28) == (shift > 8)
            if shift <= 8:
                assert ctx.get(dut.shift) == -23 - shift

    simulate(dut, bench, background=[multiply], limit=20_000)


@pytest.fixture(scope="module")
def dut():
    return Softmax(CHIP)


class Bench(UnitBench):
    """The surroundings of a `Softmax`."""

    def __init__(self, dut, rows, *, in_place=False, stall=0.0):
        config, rng = dut.config, np.random.default_rng(3)
        height, width, columns = rows.x.shape
        pitch = -(-columns // config.array.depth) + 1
        image = NetworkCoreImage(rng, config)
        self.rows, self.source = rows, image.take_map(MapPlace(0, pitch, width * pitch + 2), height)
        apart = MapPlace(0, pitch + 1, width * (pitch + 1) + 1)  # its steps differ from the input's
        self.output = self.source if in_place else image.take_map(apart, height)
        image.store_map(self.source, rows.x)
        job = softmax_job(config, rows, self.source, self.output)
        super().__init__(dut, image, job, dut.difference, dut.exponential, rows.table, stall)


def rows_of(seed, shape, scale):
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, shape).astype(np.int8)
    return softmax_rows(x, scale)


@pytest.mark.parametrize("config, shape, in_place, scale", quick(6, [
    (CHIP, (1, 1, 1), False, 0.1), (CHIP, (2, 2, 2), True, 0.03), (SLOW, (2, 1, 5), False, 0.5),
    (SERIAL, (3, 2, 5), False, 0.1), (ROW, (1, 2, 3), True, 0.1), (CHIP, (1, 2, 9), True, 0.004),
    (SLOW, (2, 3, 18), True, 0.03),
]))
def test_maps(config, shape, in_place, scale):
    dut = Softmax(config)
    case = Bench(dut, rows_of(1, shape, scale), in_place=in_place, stall=0.3)

    async def bench(ctx):
        await case.start(ctx)
        await ctx.tick().until(dut.done)
        await ctx.tick()
        assert not ctx.get(dut.busy)

    before = case.image.vectors().copy()
    before[case.image.map_index(case.output, shape)] = case.rows.y
    case.run(bench)
    assert case.image.vectors().tolist() == before.tolist()  # and no other byte is stored
    assert not case.errors


def test_extremes(dut):
    x = np.full((1, 6, 3), 5, np.int8)
    x[0, 1], x[0, 2] = -128, 127
    x[0, 3, 2] = 127
    x[0, 4, :2] = -128
    x[0, 5, 0], x[0, 5, 1] = -128, 127
    case = Bench(dut, softmax_rows(x, 4.0))

    async def bench(ctx):
        for _ in range(2):  # no state is left
            await case.start(ctx)
            await ctx.tick().until(dut.done)

    case.run(bench)
    assert case.image.read_map(case.output, x.shape).tolist() == case.rows.y.tolist()


def test_terms_are_rounded(dut):
    """Of this row, a total of truncated terms has another result."""
    x = np.array([[[-56, -50, 62, -69, -91, 38, 9, -61]]], np.int8)
    case = Bench(dut, softmax_rows(x, 0.03))

    async def bench(ctx):
        await case.start(ctx)
        await ctx.tick().until(dut.done)

    case.run(bench)
    assert case.image.read_map(case.output, x.shape).tolist() == case.rows.y.tolist()


def test_other_jobs_do_not_start_it(dut):
    case = Bench(dut, rows_of(1, (1, 1, 2), 0.1))

    async def bench(ctx):
        put(ctx, dut.job.fields, hardware_fields(CHIP, case.job) | {"softmax": 0})
        await pulse(ctx, dut.job.start)
        await ticks(ctx, 30)
        assert not ctx.get(dut.busy)

    case.run(bench)
    assert not case.port.reads


@pytest.mark.parametrize("map_", ["input", "output"])
@pytest.mark.parametrize("number", [-1, 4 * CHIP.banks - 1])
def test_no_access_beyond_the_limits(dut, map_, number):
    case = Bench(dut, rows_of(1, (1, 1, 6), 0.1))
    # Of two vectors one lies in the window of four words.
    places = {"input": 2, "output": 5} | {map_: number}
    case.job = replace(case.job, **{name: split(n, CHIP.banks) for name, n in places.items()})

    async def bench(ctx):
        await case.start(ctx, base=5, limit=9)
        await ticks(ctx, 60)
        assert ctx.get(dut.busy)

    before = case.image.vectors().copy()
    case.run(bench)
    assert case.errors == 1
    # The place of the results is checked after the read.
    assert len(case.port.reads) == (number > 0) + (map_ == "output")
    assert (case.image.vectors() == before).all()
