"""LSTM: the functions, whole jobs with vectors of all sizes, accesses beyond the window."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_jobs import MapPlace, NetworkCoreImage
from network_core_lstm import lstm_job, random_step, step_of
from network_core_output import network_core_of
from side_port import hardware_fields
from tiers import quick
from unit_bench import UnitBench

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.golden.network_core.lstm import lstm_step
from weft.hw.network_core.output.lstm import Interpolation, Lstm
from weft.latencies import MEMORY_READ
from weft.models.kernels.tflite import logistic16, tanh16
from weft.network_core.descriptors import split
from weft.network_core.latencies import MAP_PRODUCT

CHIP = network_core_of(2, 4, 8, 2, lstm=True)
CONFIGS = [
    CHIP, network_core_of(2, 4, 4, 1, target="ice40up", scale_cycles=8, lstm=True),
    network_core_of(1, 4, 32, 1, scale_cycles=32, read_vectors=1, lstm=True),
    network_core_of(3, 4, 16, 4, scale_cycles=2, target="gowin", lstm=True),
]


def test_functions():
    """A value in each cycle: the sigmoids and tanhs of both runtimes' kernels."""
    dut, rng = Interpolation(), np.random.default_rng(1)
    count = 400
    x = rng.integers(-(1 << 15), 1 << 15, count)
    x[:6] = -32768, 32767, -1, 0, 1, -10923
    x[6:200] //= rng.choice([7, 50, 400], 194)
    is_tanh, powers = rng.integers(0, 2, count), rng.integers(-3, 4, count)
    powers[is_tanh == 0] = 0
    expected = [
        int(tanh16(np.int64(v), 3 << max(p, 0), max(-p, 0)) if t else logistic16(np.int64(v), 3, 0))
        for v, t, p in zip(x, is_tanh, powers, strict=True)
    ]
    words, found = step_of(*np.zeros((2, 1, 4), np.int32), np.zeros(1, np.int16)).table, []

    async def table(ctx):
        pipe = [0] * (MEMORY_READ - 1)
        while True:
            _, _, index = await ctx.tick().sample(dut.index)
            pipe.append(int(words[index]))
            ctx.set(dut.word, pipe.pop(0))

    async def multiplier(ctx):
        pipe = [0] * (MAP_PRODUCT - 1)
        while True:
            _, _, step, rest = await ctx.tick().sample(dut.step, dut.rest)
            pipe.append(step * rest)
            ctx.set(dut.product, pipe.pop(0))

    async def results(ctx):
        while True:
            _, _, y, done = await ctx.tick().sample(dut.y, dut.done)
            if done:
                found.append(y)

    async def bench(ctx):
        for value, function, power in zip(x, is_tanh, powers, strict=True):
            put(ctx, dut.x, int(value))
            put(ctx, dut.is_tanh, int(function))
            put(ctx, dut.shift, 3 + int(power))
            await pulse(ctx, dut.start)
        await ticks(ctx, dut.LATENCY + 1)

    simulate(dut, bench, background=[table, multiplier, results])
    assert found == expected


class Bench(UnitBench):
    """The surroundings of an `Lstm`, and the bytes that it must leave."""

    def __init__(self, dut, step, *, stall=0.0):
        config, units = dut.config, len(step.cell)
        image = NetworkCoreImage(np.random.default_rng(3), config)
        maps = (
            step.fed.astype("<i4").reshape(-1).view(np.int8),
            step.own.astype("<i4").reshape(-1).view(np.int8),
            step.cell.astype("<i2").view(np.int8), np.zeros(units, np.int8),
        )
        self.maps = []
        for values in maps:
            vectors = -(-values.size // config.array.depth)
            self.maps.append(image.take_map(MapPlace(0, vectors, vectors), 1))
            image.take(1)
        for place, values in zip(self.maps[:3], maps[:3], strict=True):
            image.store_map(place, values.reshape(1, 1, -1))
        self.expected = image.vectors().copy()
        after = step.new_cell.astype("<i2").view(np.int8), step.hidden
        for place, values in zip(self.maps[2:], after, strict=True):
            shape = 1, 1, values.size
            self.expected[image.map_index(place, shape)] = values.reshape(shape)
        job = lstm_job(config, step, [place.number for place in self.maps])
        super().__init__(dut, image, job, dut.place, dut.word, step.table, stall)


@pytest.mark.parametrize("config", quick(1, CONFIGS), ids=lambda config: config.array.name)
def test_steps(config):
    units = max(2, config.array.depth // 2 + 1)  # the cells take two vectors
    case = Bench(Lstm(config), random_step(np.random.default_rng(5), units, 700), stall=0.3)

    async def bench(ctx):
        await case.start(ctx)
        await ctx.tick().until(case.dut.done)
        await ctx.tick()
        assert not ctx.get(case.dut.busy)

    case.run(bench)
    assert case.image.vectors().tolist() == case.expected.tolist()  # and no other byte is stored
    assert not case.errors


@pytest.fixture(scope="module")
def dut():
    return Lstm(CHIP)


def test_one_step_after_the_other(dut):
    """No state is left but the cell: the second step has the one of the first."""
    step = random_step(np.random.default_rng(6), 2)
    case = Bench(dut, step)

    async def bench(ctx):
        for _ in range(2):
            await case.start(ctx)
            await ctx.tick().until(dut.done)
        await ctx.tick()

    case.run(bench)
    hidden, cell = lstm_step(step.fed, step.own, step.new_cell, step.table, step.zero)
    assert case.image.read_map(case.maps[3], (1, 1, 2)).ravel().tolist() == hidden.tolist()
    found = case.image.read_map(case.maps[2], (1, 1, 4)).ravel().view("<i2")
    assert found.tolist() == cell.tolist()


def test_other_jobs_do_not_start_it(dut):
    case = Bench(dut, random_step(np.random.default_rng(7), 1))

    async def bench(ctx):
        put(ctx, dut.job.fields, hardware_fields(CHIP, case.job) | {"lstm": 0})
        await pulse(ctx, dut.job.start)
        await ticks(ctx, 60)
        assert not ctx.get(dut.busy)

    case.run(bench)
    assert not case.port.reads


@pytest.mark.parametrize("map_, reads", [
    ("input", 0), ("add_input", 2), ("add_pixel_step", 4), ("output", 5),
])
def test_no_access_beyond_the_limits(dut, map_, reads):
    case = Bench(dut, random_step(np.random.default_rng(8), 1))
    outside = split(-1 if map_ != "add_pixel_step" else -40, CHIP.banks)
    case.job = replace(case.job, **{map_: outside})

    async def bench(ctx):
        await case.start(ctx, base=5, limit=40)
        await ticks(ctx, 250)
        assert ctx.get(dut.busy)

    before = case.image.vectors().copy()
    case.run(bench)
    assert case.errors == 1
    assert len(case.port.reads) == reads
    cell = case.maps[2].number + 5 * CHIP.banks
    changed = np.flatnonzero((case.image.vectors() != before).any(1)).tolist()
    assert set(changed) <= ({cell} if map_ == "output" else set())
