"""The engine with a core: products with operands and results in memory."""

import functools

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks
from verif.axi_memory import AxiMemory
from verif.dma_scenario import DmaScenario
from weft.commands import Job, JobFlag, Load, LoadFlag, Region, epilogue_flags
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch, Store
from weft.geometry import memories
from weft.host.packing import pack
from weft.hw.core import Core
from weft.hw.dma.engine import Dma
from weft.sim.scenario import A, B

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


@functools.cache
def with_core(config):
    """An engine; and a module with the engine and a core, elaborated once for all tests."""
    m = Module()
    m.submodules.dma = dma = Dma(config)
    m.submodules.core = core = Core(config)
    connect(m, dma.commands, core.commands)
    connect(m, core.results, dma.results)
    return dma, m


def words(descriptors):
    return [
        int.from_bytes(d[n : n + 4], "little") for d in descriptors for n in range(0, len(d), 4)
    ]


def run(
    program, *, pause=0.0, latency=0, seed=0, limit=40_000, bad=(), errors=(0, 0, 0), marks=False
):
    """Run a program; returns its memory. With ``marks`` the status of jobs is not checked."""
    dut, both = with_core(program.config)
    width = program.config.bytes_in
    memory = AxiMemory(
        dut.axi, data_bytes=width, size=len(program.memory), pause=pause, latency=latency, seed=seed
    )
    memory.memory[:] = program.memory
    memory.bad = set(bad)
    ends, counts = [], np.zeros(4, int)

    async def source(ctx):
        await send(ctx, dut.descriptors, words(program.descriptors))

    async def sink(ctx):
        while len(ends) < len(program.ends):
            await ctx.tick()
        while ctx.get(dut.busy):
            await ctx.tick()
        await ticks(ctx, 20)
        assert not ctx.get(dut.busy) and ctx.get(dut.idle)

    async def watch(ctx):
        watched = dut.job_done, dut.job_tag, dut.job_status, dut.dma_read_error, dut.dma_write_error
        while True:
            _, _, job_done, tag, status, *pulses = await ctx.tick().sample(
                *watched, dut.bad_descriptor, dut.bad_address
            )
            counts[:] += pulses
            if job_done:
                ends.append((tag, status))

    simulate(both, source, sink, background=[memory.run, watch], limit=limit)
    assert memory.idle
    assert marks or ends == program.ends
    assert errors is None or tuple(counts[:3]) == errors
    *memory.pulses, memory.bad_addresses = map(int, counts)
    return memory


def program_of(config, seed, jobs=4, size=1 << 15):
    """Products of many shapes; operands loaded before the job, fed after it, or loaded earlier."""
    program = DmaScenario(config, size=size, seed=seed)
    rng, narrow = program.rng, [*epilogue_flags(config)[:1]]
    for tag in range(jobs):
        k = int(rng.choice([1, 2, 7, 33]))
        m, n = int(rng.integers(1, 2 * config.rows + 2)), int(rng.integers(1, 2 * config.cols + 2))
        a, b = program.operands(m, n, k)
        flags = narrow[0] if narrow and tag % 2 else JobFlag(0)
        columns = list(parameters(rng, len(b))) if JobFlag.REQUANTIZE in flags else None
        fed = [(), (A, B), (B,)][tag % 3]
        placed = program.multiply(a, b, parameters=columns, feed=fed, flags=flags, tag=tag)
        program.job(*placed, flags=flags, tag=tag + 100)
    return program


def parameters(rng, columns):
    for _ in range(columns):
        multiplier, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-12, 1))
        yield int(rng.integers(-9999, 9999)), multiplier, shift, 0, 3, -128, 127


@pytest.mark.parametrize("name, pause, latency", [
    pytest.param("8x8x1", 0.0, 0, marks=pytest.mark.long),
    pytest.param("3x4x2", 0.5, 30, marks=pytest.mark.slow),
    pytest.param("4x2x4-wide", 0.4, 60, marks=pytest.mark.long),
    pytest.param("2x4x1-bf16", 0.5, 30, marks=pytest.mark.long),
])
def test_products(name, pause, latency):
    program = program_of(CONFIGS[name], 1)
    assert run(program, pause=pause, latency=latency).memory == program.expected


def packed(config, matrix, region, load):
    """The payload of a load of ``matrix``, and a mask without the gaps between words."""
    g = memories(config)[region]
    ks = -(-load.words // g.group) * g.group * g.depth
    ones = np.full((load.panels * g.edge, ks), -1, f"i{g.size}").view(f"u{g.size}")
    return pack(matrix, g), pack(ones, g)


def check_fetches(dut, descriptors, payloads, *, pause, seed):
    """Run descriptors of loads; check the commands, each payload with its mask."""
    config = dut.config
    width = config.bytes_in
    memory = AxiMemory(
        dut.axi, data_bytes=width, size=1 << 16, pause=pause, latency=30, seed=seed
    )
    expected = []
    for descriptor, (data, used) in zip(descriptors, payloads(memory), strict=True):
        header = descriptor.load.pack()
        header += bytes(-len(header) % width)
        for part, mask in ((header, b"\xff" * len(header)), (data, used)):
            expected += [
                tuple(int.from_bytes(x[n : n + width], "little") for x in (part, mask))
                for n in range(0, len(part), width)
            ]

    async def source(ctx):
        await send(ctx, dut.descriptors, words(d.pack() for d in descriptors))

    async def sink(ctx):
        found = await receive(ctx, dut.commands, len(expected), stall=pause)
        await quiet(ctx, dut.commands)
        assert not ctx.get(dut.busy)
        for n, (word, (value, mask)) in enumerate(zip(found, expected, strict=True)):
            assert word & mask == value & mask, f"word {n}"

    simulate(
        dut, source, sink, background=[memory.run, checker(dut.commands, "commands")], limit=60_000
    )


FETCHES = {
    **CONFIGS,
    "8x8x8": Config(rows=8, cols=8, depth=8, multiplier="plain", lanes=1, activation="none"),
    "3x5x2": Config(rows=3, cols=5, depth=2, activation="none", lanes=1),
    "4x4x1-4": Config(rows=4, cols=4, bytes_in=4, bytes_out=4, activation="none", lanes=1),
}


@pytest.mark.parametrize("name, pause", [
    ("8x8x1", 0.0), pytest.param("4x4x1-4", 0.5, marks=pytest.mark.long), *(
        pytest.param(name, 0.5, marks=[] if name == "2x4x1-bf16" else pytest.mark.slow)
        for name in FETCHES if name != "4x4x1-4"
    ),
])
def test_panels(name, pause):
    """Operands in all orders, at any byte and stride, are packed as the host packs them."""
    config = FETCHES[name]
    size = config.data_type.a.bytes
    a, b, (k, lines, raw) = Region.A, Region.B, ElementOrder
    cases = [
        (a, 8, 16, k, 0x100, 32), (b, 8, 16, lines, 0x203, 37), (a, 3, 5, k, 0xFF3, 101),
        (b, 11, 33, k, 0x1003, 57), (a, 19, 7, lines, 0x1FFB, 23), (b, 1, 1, k, 5, 1),
        (a, 8, 16, raw, 0x500, 0), (a, 2, 40, k, 0x7001, -300), (b, 5, 9, lines, 0x3F01, -11),
    ]
    if name == "4x4x1-4":  # more than one half of the packing memory
        cases += [(a, 5, 600, k, 0x4001, 611), (b, 3, 513, lines, 0x4003, 5)]
    dut, descriptors = Dma(config), []
    for region, count, length, order, address, stride in cases:
        g = memories(config)[region]
        load = Load(region, 0, 1, g.panels(count), g.panel_words(length))
        address = address & -size if order != raw else address
        descriptors.append(Fetch(load, address, stride * size, count, length, order))

    def payloads(memory):
        rng = np.random.default_rng(1)
        memory.memory[:] = rng.integers(0, 256, len(memory.memory), np.uint8).tobytes()
        for (region, count, length, order, *_), d in zip(cases, descriptors, strict=True):
            if order == raw:
                bytes_ = d.load.panels * memories(config)[region].panel_stream_words(length)
                bytes_ *= config.bytes_in
                yield memory.memory[d.address : d.address + bytes_], b"\xff" * bytes_
                continue
            steps = (d.stride, size) if order == k else (size, d.stride)
            whole = np.ndarray(
                (count, length), f"<u{size}", memory.memory, d.address, steps
            )
            yield packed(config, whole.copy(), region, d.load)

    check_fetches(dut, descriptors, payloads, pause=pause, seed=3)


def test_jobs_that_keep_their_sums():
    """KEEP has no results; REJECTED is reported, for a job with KEEP too."""
    config = CONFIGS["3x4x2"]
    program = DmaScenario(config, size=1 << 13, seed=1)
    a, b = program.operands(2, 3, 5)
    program.multiply(a, b, flags=JobFlag.KEEP, tag=1)
    program.multiply(a, b, flags=JobFlag.ACCUMULATE, tag=2)
    program.reject(tag=3, k=0)
    program.reject(tag=4, m=99, flags=JobFlag.KEEP)
    program.multiply(a, b, tag=5)
    assert run(program).memory == program.expected


def test_errors_are_reported_and_the_engine_goes_on():
    config = CONFIGS["3x4x2"]
    program = program_of(config, 3, jobs=1, size=1 << 13)
    reads = run(program, bad=range(0, 256, 8), errors=None, marks=True)
    assert reads.pulses[0] > 0
    target = max(n for n, byte in enumerate(program.expected) if byte != program.memory[n])
    writes = run(program, bad={target & -8}, errors=None, marks=True)
    assert writes.pulses[0] == 0 and writes.pulses[1] > 0


@pytest.mark.slow
def test_bad_descriptors_are_dropped():
    program = program_of(CONFIGS["3x4x2"], 4, jobs=2, size=1 << 13)
    program.descriptors.insert(0, bytes(64))
    program.descriptors.insert(4, b"\xff" * 64)
    assert run(program, errors=(0, 0, 2)).memory == program.expected


@pytest.mark.slow
def test_an_error_marks_the_job_that_it_belongs_to():
    """Errors in operands loaded before, fed, or of a job that keeps its sums; and in results."""
    config = CONFIGS["3x4x2"]
    program = DmaScenario(config, size=1 << 13, seed=1)
    a, b = program.operands(2, 3, 3)
    kinds = [*[()] * 3, *[(A, B)] * 5]
    flags = {5: JobFlag.KEEP, 6: JobFlag.ACCUMULATE}
    for tag, fed in enumerate(kinds):
        program.multiply(a, b, feed=fed, flags=flags.get(tag, JobFlag(0)), tag=tag)
    loads, stores = ([d for d in program.descriptors if d[0] == kind] for kind in (2, 1))
    errors = {1: loads[2], 3: loads[7], 4: stores[4], 6: loads[10]}
    status = {1: 4, 3: 4, 4: 8, 6: 4}
    program.ends = [(tag, status.get(tag, 0)) for tag in (0, 1, 2, 3, 4, 6, 7)]
    bad = {int.from_bytes(d[32:36], "little") & -config.bytes_in for d in errors.values()}
    run(program, bad=bad, errors=None)


@pytest.mark.slow
def test_bad_addresses_are_dropped_before_any_access():
    """They change nothing for the good jobs around them."""
    program = program_of(CONFIGS["3x4x2"], 4, jobs=2, size=1 << 13)
    k, c = Load(Region.A, 0, 1, 1, 4, LoadFlag.FEED), Job(3, 4, 1, *[1] * 6, tag=99)
    top, load = (1 << 32) - 8, Load(Region.B, 0, 1, 1, 4)
    bad = [
        Fetch(load, top, 8, 2, 8), Fetch(load, 0x100, -0x101, 2, 8),
        Fetch(load, top + 1, 1, 8, 8, ElementOrder.K_MINOR), Fetch(k, 0, 1 << 31, 2, 8),
        Store(c, top, 8), Store(c, 0x100, -0x88),
        Fetch(Load(Region.B, 0, 1, 3, 4), top, order=ElementOrder.PACKED),
    ]
    for n, one in enumerate(bad):
        program.descriptors.insert(3 * n, one.pack())
    memory = run(program, errors=(0, 0, len(bad)))
    assert memory.memory == program.expected and memory.bad_addresses == len(bad)
    assert all(address < len(program.memory) for _, address, _ in memory.bursts)
