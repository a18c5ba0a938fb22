"""SOFTMAX: products and reciprocals to the bit, whole jobs, cycles, accesses beyond the window."""

import random
from dataclasses import replace

import numpy as np
import pytest
from network_core_jobs import MapPlace, NetworkCoreImage
from network_core_output import network_core_of
from network_core_softmax import softmax_job, softmax_rows
from side_port import SidePort, hardware_fields

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.hw.network_core.output.softmax import HighProduct, Reciprocal, Softmax
from weft.latencies import MEMORY_READ
from weft.models.kernels.fixed_point import high_mul, reciprocal
from weft.network_core.descriptors import split
from weft.network_core.latencies import SOFTMAX_PRODUCT

CHIP = network_core_of(2, 4, 4, 2, softmax=True)
EXTREMES_32 = [-(1 << 31), -1, 0, 1, (1 << 31) - 1]


def test_products():
    dut, rng = HighProduct(), random.Random(1)

    async def bench(ctx):
        for _ in range(30):
            a = rng.choice([*EXTREMES_32, rng.randrange(-(1 << 31), 1 << 31)])
            b = rng.choice([0, 1, (1 << 31) - 1, rng.randrange(1 << 31)])
            put(ctx, dut.b, b)
            await pulse(ctx, dut.start)
            put(ctx, dut.b, rng.randrange(1 << 31))
            put(ctx, dut.a, a)
            await ticks(ctx, SOFTMAX_PRODUCT - 2)
            assert not ctx.get(dut.done)
            await ctx.tick()
            assert ctx.get(dut.done)
            assert ctx.get(dut.product) == high_mul(a, b)

    simulate(dut, bench)


def test_reciprocals():
    dut, rng = Reciprocal(), random.Random(2)
    totals = [1 << 19, (1 << 19) + 1, (1 << 31) - 1, 1 << 30, (1 << 30) - 1]
    totals += [rng.randrange(1 << rng.randint(19, 30), 1 << 31) for _ in range(25)]

    async def multiply(ctx):
        """Any latency will do."""
        while True:
            [b] = await ctx.tick().sample(dut.b).until(dut.multiply)
            ctx.set(dut.product_done, 0)
            await ticks(ctx, 3)
            put(ctx, dut.product, int(high_mul(ctx.get(dut.a), b)))
            ctx.set(dut.product_done, 1)

    async def bench(ctx):
        for total in totals:
            put(ctx, dut.total, total)
            await pulse(ctx, dut.start)
            put(ctx, dut.total, rng.randrange(1 << 32))
            await ctx.tick().until(dut.done)
            await ticks(ctx, 3)  # both stay
            expected, shift = reciprocal(total, 12)
            assert (ctx.get(dut.a), 12 - ctx.get(dut.zeros)) == (expected, shift)

    simulate(dut, bench, background=[multiply], limit=20_000)


@pytest.fixture(scope="module")
def dut():
    return Softmax(CHIP)


class Bench:
    """The memory, the table and the job around a `Softmax`; keeps its stores."""

    def __init__(self, dut, rows, *, in_place=False, stall=0.0):
        rng = np.random.default_rng(3)
        height, width, columns = rows.x.shape
        pitch = -(-columns // CHIP.array.depth) + 1
        self.rows, self.image = rows, NetworkCoreImage(rng, CHIP)
        self.source = self.image.take_map(MapPlace(0, pitch, width * pitch + 2), height)
        self.output = self.source if in_place else self.image.take_map(self.source, height)
        self.image.store_map(self.source, rows.x)
        self.job = softmax_job(CHIP, rows, self.source, self.output)
        self.dut = dut
        vectors = [int.from_bytes(v.tobytes(), "little") for v in self.image.vectors()]
        self.port = SidePort(CHIP, vectors, stall=stall)
        self.errors = 0

    async def table(self, ctx):
        pipe = [0] * (MEMORY_READ - 1)
        while True:
            _, _, difference = await ctx.tick().sample(self.dut.difference)
            pipe.append(int(self.rows.table[difference]))
            ctx.set(self.dut.exponential, pipe.pop(0))

    async def memory(self, ctx):
        """Execute the writes, and watch for errors."""
        dut, depth = self.dut, CHIP.array.depth
        vectors = self.image.vectors()
        while True:
            _, _, write, error = await ctx.tick().sample(dut.write, dut.address_error)
            self.errors += error
            if write.valid:
                number = write.address.word * CHIP.banks + write.address.bank
                data = np.frombuffer(write.data.to_bytes(depth, "little"), np.int8)
                [byte] = [n for n in range(depth) if write.enable >> n & 1]
                vectors[number, byte] = data[byte]

    async def start(self, ctx, base=0, limit=CHIP.words):
        put(ctx, self.dut.job.fields, hardware_fields(CHIP, self.job, base))
        put(ctx, self.dut.window.base, base)
        put(ctx, self.dut.window.limit, limit)
        await pulse(ctx, self.dut.job.start)
        assert ctx.get(self.dut.busy)

    def run(self, bench):
        async def serve(ctx):
            await self.port.serve(ctx, self.dut)

        simulate(self.dut, bench, background=[serve, self.table, self.memory])


def rows_of(seed, shape, scale):
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, shape).astype(np.int8)
    return softmax_rows(x, scale)


@pytest.mark.parametrize("shape, in_place, scale", [
    ((1, 1, 1), False, 0.1), ((2, 2, 2), True, 0.03), ((2, 1, 5), False, 0.5),
    ((1, 2, 9), True, 0.004),
])
def test_maps(dut, shape, in_place, scale):
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
    assert len(case.port.reads) == int(number > 0)
    assert (case.image.vectors() == before).all()
