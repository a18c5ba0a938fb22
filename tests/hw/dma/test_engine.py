"""The engine before a core: products whose operands lie in memory, and whose results go there."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from ml_dtypes import bfloat16

from weft.commands import JobFlag, finishes
from weft.config import Config
from weft.hw.core import Core
from weft.hw.dma.engine import Dma
from weft.sim.amaranth_bench import send, simulate, ticks
from weft.sim.axi_memory import AxiMemory
from weft.sim.dma_program import DmaProgram

SMALL = {"a_words": 256, "b_words": 256}
CONFIGS = {
    "8x8x1": Config(lanes=4, **SMALL),
    "3x4x2": Config(
        rows=3, cols=4, depth=2, lanes=2, bytes_in=8, bytes_out=8, activation="none", **SMALL
    ),
    "4x2x4-wide": Config(
        rows=4, cols=2, depth=4, lanes=2, bytes_in=4, bytes_out=4, requantize="none", **SMALL
    ),
    "2x4x1-bf16": Config(
        rows=2, cols=4, dtype="bf16", lanes=4, bytes_in=8, bytes_out=8, c_words=32, **SMALL
    ),
}
ALL = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def before_core(config):
    """An engine, and it with a core behind it."""
    m = Module()
    m.submodules.dma = dma = Dma(config)
    m.submodules.core = core = Core(config)
    connect(m, dma.commands, core.commands)
    connect(m, core.results, dma.results)
    return dma, m


def values(rng, config, count, k):
    if config.dtype == "int8":
        lines = rng.integers(-128, 128, (count, k)).astype(np.int8)
        return np.where(rng.random((count, k)) < 0.2, np.int8(-128), lines)
    whole = rng.integers(-9, 10, (count, k)).astype(np.float32)
    return whole.astype(bfloat16)


def words(descriptors):
    return [
        int.from_bytes(d[n : n + 4], "little") for d in descriptors for n in range(0, len(d), 4)
    ]


def run(program, *, pause=0.0, latency=0, seed=0, limit=40_000, bad=(), errors=(0, 0, 0)):
    """Run a program; the memory that it left."""
    dut, both = before_core(program.config)
    width = program.config.bytes_in
    memory = AxiMemory(
        dut.axi, data_bytes=width, size=len(program.memory), pause=pause, latency=latency, seed=seed
    )
    memory.memory[:] = program.memory
    memory.bad = set(bad)
    ends, seen = [], np.zeros(3, int)

    async def source(ctx):
        await send(ctx, dut.descriptors, words(program.descriptors))

    async def sink(ctx):
        while len(ends) < len(program.ends):
            await ctx.tick()
        while ctx.get(dut.moving):
            await ctx.tick()
        await ticks(ctx, 20)
        assert not ctx.get(dut.moving) and ctx.get(dut.idle)

    async def watch(ctx):
        watched = dut.ended, dut.tag, dut.status, dut.fetch_error, dut.store_error
        while True:
            _, _, ended, tag, status, *error, wrong = await ctx.tick().sample(
                *watched, dut.bad_descriptor
            )
            seen[:] += [*error, wrong]
            if ended:
                ends.append((tag, status))

    simulate(both, source, sink, background=[memory.run, watch], limit=limit)
    assert memory.idle
    assert ends == program.ends
    assert tuple(seen) == errors
    return memory


def program_of(config, seed, jobs=6, size=1 << 16):
    """Products of all shapes that fit, operands loaded before, fed behind, or there already."""
    rng = np.random.default_rng(seed)
    program = DmaProgram(config, size=size, seed=seed)
    narrow = [*finishes(config)[:1]]
    for tag in range(jobs):
        k = int(rng.choice([1, 2, 7, 33]))
        m, n = int(rng.integers(1, 2 * config.rows + 2)), int(rng.integers(1, 2 * config.cols + 2))
        a, b = values(rng, config, m, k), values(rng, config, n, k)
        flags = JobFlag(0)
        if narrow and tag % 2:
            flags = narrow[0]
            if config.dtype == "int8":
                page = 0
                program.parameters(list(parameters(rng, n)), page, -(-k // (16 * config.depth)))
        fed = [(), (0, 1), (1,)][tag % 3]
        program.multiply(a, b, fed=fed, flags=flags, tag=tag)
        program.job(a, b, flags=flags, tag=tag + 100)
    program.end()
    return program


def parameters(rng, columns):
    for _ in range(columns):
        multiplier, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-12, 1))
        yield int(rng.integers(-9999, 9999)), multiplier, shift, 0, 3, -128, 127


@ALL
@pytest.mark.parametrize("pause, latency", [(0.0, 0), (0.5, 30)])
def test_products(config, pause, latency):
    program = program_of(config, 1)
    memory = run(program, pause=pause, latency=latency)
    assert memory.memory == program.expected
