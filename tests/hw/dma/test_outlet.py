"""Headers and payloads become the command stream."""

import random

import pytest

from weft.commands import Load, Region
from weft.config import Config
from weft.descriptors import Fetch, Order
from weft.geometry import memories
from weft.hw.dma.layout import layouts
from weft.hw.dma.outlet import Outlet
from weft.sim.amaranth_bench import checker, put, quiet, receive, simulate

CONFIGS = {width: Config(rows=2, cols=2, bytes_in=width, lanes=1) for width in (4, 16, 64)}
LOADS = [  # the operand, its lines and k, how it lies
    (Region.B, 3, 9, Order.RAW), (Region.A, 5, 20, Order.K), (Region.PARAMETERS, 2, 1, Order.RAW),
    (Region.A, 2, 1, Order.K), (Region.TABLE, 1, 256, Order.RAW),
]


def words(data, width):
    data += bytes(-len(data) % width)
    return [int.from_bytes(data[n : n + width], "little") for n in range(0, len(data), width)]


@pytest.mark.parametrize("width", CONFIGS)
@pytest.mark.parametrize("stall", [0, 0.6])
def test_sends(width, stall):
    """Packed rows come from a memory of this bench, raw beats as they are due."""
    config, rng = CONFIGS[width], random.Random(1)
    geometries, lays = memories(config), layouts(config)
    dut = Outlet(bytes_in=width, geometries=geometries, layouts=lays)
    due, loads, panels = [], [], []
    for region, lines, k, order in LOADS:
        g = geometries[region]
        load = Load(region, 0, 1, g.panels(lines), g.panel_words(k))
        lots = [
            [rng.getrandbits(8 * width) for _ in range(g.panel_stream_words(k))]
            for _ in range(load.panels)
        ]
        loads.append(Fetch(load, 0, order=order))
        panels += [(region, order, lot) for lot in lots]
        due += words(load.pack(), width) + [word for lot in lots for word in lot]

    async def front(ctx):
        for one in loads:
            while not ctx.get(dut.idle):
                await ctx.tick()
            packed = one.pack()
            for index in (*range(8), 12):
                put(ctx, dut.word, int.from_bytes(packed[4 * index : 4 * index + 4], "little"))
                put(ctx, dut.index, index)
                while ctx.get(dut.full):
                    await ctx.tick()
                put(ctx, dut.take, 1)
                await ctx.tick()
                put(ctx, dut.take, 0)
            put(ctx, dut.start, 1)
            await ctx.tick()
            put(ctx, dut.start, 0)

    async def around(ctx):
        for region, order, lot in panels:
            raw = order == Order.RAW
            if raw:
                for n, beat in enumerate(lot):
                    put(ctx, dut.raw, 1)
                    put(ctx, dut.beats.valid, 1)
                    put(ctx, dut.beats.payload, beat)
                    ready = end = 0
                    while not ready:
                        _, _, ready, end = await ctx.tick().sample(dut.beats.ready, dut.raw_end)
                    put(ctx, dut.beats.valid, 0)
                    assert end == (n == len(lot) - 1)
                put(ctx, dut.raw, 0)
                continue
            places = lays[region].places
            memory = [
                sum(word << 8 * width * n for n, word in enumerate(lot[at : at + places]))
                for at in range(0, len(lot), places)
            ]
            put(ctx, dut.filled, 1)
            first = second = released = quiet_for = 0
            for _ in range(1000):  # the packer's memory: a row two steps later
                put(ctx, dut.rows, second)
                row = ctx.get(dut.row)
                _, _, en, release = await ctx.tick().sample(dut.en, dut.release)
                if en:
                    first, second = memory[row] if row < len(memory) else 0, first
                if release:
                    released += 1
                    put(ctx, dut.filled, 0)
                quiet_for = 0 if ctx.get(dut.commands.valid) or not released else quiet_for + 1
                if quiet_for > 4:
                    break
            assert released == 1

    async def sink(ctx):
        assert await receive(ctx, dut.commands, len(due), stall=stall) == due
        await quiet(ctx, dut.commands)
        assert ctx.get(dut.idle)

    simulate(dut, front, around, sink, background=[checker(dut.commands, "commands")])
