"""The reader: read requests become bursts within blocks, in order, with space for all beats."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import send, simulate, ticks
from verif.axi_memory import AxiMemory
from weft.hw.dma.axi import BURST
from weft.hw.dma.reader import Reader

SIZE = 1 << 14


def expected_bursts(runs, width):
    """Yield the bursts of runs (address, bytes)."""
    for address, size in runs:
        beat, last = address // width, (address + size - 1) // width
        while beat <= last:
            end = min(last, beat // BURST * BURST + BURST - 1)
            yield "ar", beat * width, end - beat + 1
            beat = end + 1


def request(address, size, width):
    return {"addr": address, "last_beat": (address % (width * BURST) + size - 1) // width}


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("pause, stall", quick(2, [(0, 0), (0.5, 0.3), (0, 0.9)]))
def test_reads(width, pause, stall):
    rng = random.Random(width)
    runs = [(rng.randrange(4000), rng.choice([1, 2, 17, 600])) for _ in range(25)]
    runs += [(4095, 2), (4096 - 16 * width, 16 * width), (8191, 1)]
    dut = Reader(data_bytes=width, max_beats=200, part_bytes=2, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=width, size=SIZE, pause=pause, latency=30, seed=1)
    memory.memory[:] = rng.randbytes(SIZE)
    bursts = [*expected_bursts(runs, width)]
    beats = [
        int.from_bytes(memory.memory[a + n * width : a + (n + 1) * width], "little")
        for _, a, count in bursts for n in range(count)
    ]

    async def source(ctx):
        await send(ctx, dut.requests, [request(*run, width) for run in runs])

    async def sink(ctx):
        """Take some parts of each beat."""
        wanted, found = [], []
        for beat in beats:
            while True:
                index = rng.randrange(width // 2)
                last = rng.random() < 0.6
                ready = rng.random() >= stall
                ctx.set(dut.index, index)
                ctx.set(dut.pop, last and ready)
                _, _, valid, part = await ctx.tick().sample(dut.valid, dut.part)
                found.append(part)
                fire = ready and valid
                wanted.append(beat >> 16 * index & 0xFFFF if fire else None)
                if fire and last:
                    break
        ctx.set(dut.pop, 0)
        for _ in range(2):
            _, _, part = await ctx.tick().sample(dut.part)
            found.append(part)
        assert all(want in (None, part) for want, part in zip(wanted, found[2:], strict=True))
        await ticks(ctx, 5)
        assert ctx.get(dut.idle) and not ctx.get(dut.valid)

    async def r_is_always_ready(ctx):
        async for _, _, ready in ctx.tick().sample(dut.r.ready):
            assert ready

    simulate(
        dut, source, sink, background=[memory.run_reads, r_is_always_ready], limit=20_000
    )
    assert memory.bursts == bursts


def test_stops():
    """Beats in flight are dropped; then the reader is idle, and no burst starts."""
    dut = Reader(data_bytes=4, max_beats=200, part_bytes=4, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=4, size=SIZE, latency=20, seed=1)

    async def bench(ctx):
        await send(ctx, dut.requests, [request(0, 400, 4)])
        await ticks(ctx, 6)
        assert not ctx.get(dut.idle)
        ctx.set(dut.stop, 1)
        await ticks(ctx, 3)
        count = len(memory.bursts)
        await ticks(ctx, 200)
        assert ctx.get(dut.idle) and memory.idle
        assert 0 < len(memory.bursts) == count < 7

    simulate(dut, bench, background=[memory.run_reads])


def test_reports_errors():
    dut = Reader(data_bytes=4, max_beats=200, part_bytes=4, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=4, size=SIZE, seed=1)
    memory.bad = {8, 20}
    errors = []

    async def bench(ctx):
        await send(ctx, dut.requests, [request(0, 32, 4)])
        ctx.set(dut.pop, 1)
        await ticks(ctx, 20)
        assert ctx.get(dut.idle)

    async def watch(ctx):
        async for _, _, error in ctx.tick().sample(dut.error):
            errors.append(error)

    simulate(dut, bench, background=[memory.run_reads, watch])
    assert sum(errors) == 2
