"""Stretches become bursts: of the right length, in order, with room for all their beats."""

import random

import pytest

from weft.hw.dma.axi import BURST
from weft.hw.dma.reader import Reader
from weft.sim.amaranth_bench import send, simulate, ticks
from weft.sim.axi_memory import AxiMemory

SIZE = 1 << 14


def cut(stretches, width):
    """The bursts of stretches of (address, bytes), by the beats they hold."""
    for address, size in stretches:
        beat, last = address // width, (address + size - 1) // width
        while beat <= last:
            end = min(last, beat // BURST * BURST + BURST - 1)
            yield "ar", beat * width, end - beat + 1
            beat = end + 1


def asked(address, size, width):
    return {"addr": address, "last": (address % (width * BURST) + size - 1) // width}


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("pause, stall", [(0, 0), (0.5, 0.3), (0, 0.9)])
def test_reads(width, pause, stall):
    rng = random.Random(width)
    stretches = [(rng.randrange(4000), rng.choice([1, 2, 17, 600])) for _ in range(25)]
    stretches += [(4095, 2), (4096 - 16 * width, 16 * width), (8191, 1)]
    dut = Reader(data_bytes=width, beats=200, unit=2, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=width, size=SIZE, pause=pause, latency=30, seed=1)
    memory.memory[:] = rng.randbytes(SIZE)
    bursts = [*cut(stretches, width)]
    beats = [
        int.from_bytes(memory.memory[a + n * width : a + (n + 1) * width], "little")
        for _, a, count in bursts for n in range(count)
    ]

    async def source(ctx):
        await send(ctx, dut.stretches, [asked(*s, width) for s in stretches])

    async def sink(ctx):
        """Takes some units of each beat."""
        asked, found = [], []
        for beat in beats:
            while True:
                index = rng.randrange(width // 2)
                last = rng.random() < 0.6
                wanted = rng.random() >= stall
                ctx.set(dut.index, index)
                ctx.set(dut.leaves, last and wanted)
                _, _, there, unit = await ctx.tick().sample(dut.there, dut.unit)
                found.append(unit)
                taken = wanted and there
                asked.append(beat >> 16 * index & 0xFFFF if taken else None)
                if taken and last:
                    break
        ctx.set(dut.leaves, 0)
        for _ in range(2):
            _, _, unit = await ctx.tick().sample(dut.unit)
            found.append(unit)
        assert all(due in (None, unit) for due, unit in zip(asked, found[2:], strict=True))
        await ticks(ctx, 5)
        assert ctx.get(dut.idle) and not ctx.get(dut.there)

    async def r_waits_never(ctx):
        async for _, _, ready in ctx.tick().sample(dut.r.ready):
            assert ready

    simulate(
        dut, source, sink, background=[memory.run_reads, r_waits_never], limit=20_000
    )
    assert memory.bursts == bursts


def test_stops():
    """What was asked for comes and is dropped; then it is idle, and no burst begins."""
    dut = Reader(data_bytes=4, beats=200, unit=4, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=4, size=SIZE, latency=20, seed=1)

    async def bench(ctx):
        await send(ctx, dut.stretches, [asked(0, 400, 4)])
        await ticks(ctx, 6)
        assert not ctx.get(dut.idle)
        ctx.set(dut.stop, 1)
        await ticks(ctx, 3)
        count = len(memory.bursts)
        await ticks(ctx, 200)
        assert ctx.get(dut.idle) and memory.idle
        assert 0 < len(memory.bursts) == count < 7

    simulate(dut, bench, background=[memory.run_reads])


def test_tells_errors():
    dut = Reader(data_bytes=4, beats=200, unit=4, depth=64, target="generic")
    memory = AxiMemory(dut, data_bytes=4, size=SIZE, seed=1)
    memory.bad = {8, 20}
    errors = []

    async def bench(ctx):
        await send(ctx, dut.stretches, [asked(0, 32, 4)])
        ctx.set(dut.leaves, 1)
        await ticks(ctx, 20)
        assert ctx.get(dut.idle)

    async def watch(ctx):
        async for _, _, error in ctx.tick().sample(dut.error):
            errors.append(error)

    simulate(dut, bench, background=[memory.run_reads, watch])
    assert sum(errors) == 2
