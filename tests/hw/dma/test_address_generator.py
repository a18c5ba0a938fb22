"""Loads walked: the stretches of their operands, and what is to be made of each."""

import pytest

from weft.commands import Load, Region
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch
from weft.geometry import memories
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.layout import ROWS, layouts
from weft.sim.amaranth_bench import checker, put, receive, simulate, ticks

CONFIG = Config(rows=2, cols=3, depth=2, bytes_in=4, bytes_out=4, activation="none")
WORDS = 0, 1, 2, 3, 12, 8, 9, 10, 11
LOADS = {
    # region, lines, k, order, address, stride
    "whole": (Region.A, 4, 8, ElementOrder.K_MAJOR, 100, 8),
    "ragged": (Region.B, 4, 5, ElementOrder.K_MAJOR, 101, 13),
    "turned": (Region.B, 4, 5, ElementOrder.K_MINOR, 101, 13),
    "backwards": (Region.A, 3, 3, ElementOrder.K_MAJOR, 1000, -9),
    "long": (Region.A, 3, 2 * ROWS * 2 + 3, ElementOrder.K_MAJOR, 7, 1100),
    "long-turned": (Region.A, 3, 2 * ROWS * 2 + 3, ElementOrder.K_MINOR, 7, 3),
    "exactly-a-half": (Region.B, 1, ROWS * 2, ElementOrder.K_MAJOR, 0, 1100),
    "raw": (Region.B, 7, 5, ElementOrder.PACKED, 400, 0),
    "parameters": (Region.PARAMETERS, 4, 1, ElementOrder.PACKED, 800, 0),
    "long-raw": (Region.B, 5, 2 * ROWS + 9, ElementOrder.PACKED, 4, 0),
}


def walk(region, lines, k, order, address, stride):
    """Pieces and stretches (address, bytes) of a load, panel by panel."""
    g = memories(CONFIG)[region]
    if order == ElementOrder.PACKED:
        rows = -(-g.panel_words(k) // g.group)
        for line in range(g.panels(lines) * g.segments):
            for first in range(0, rows, ROWS):
                size = min(ROWS, rows - first) * CONFIG.bytes_in
                yield {
                    "raw": 1, "real": 1, "end": 1, "place": 0, "most": size - 1,
                    "final": line == g.panels(lines) * g.segments - 1 and first + ROWS >= rows,
                    "granules": size // layouts(CONFIG)[-1].granule - 1,
                }, (address + (line * rows + first) * CONFIG.bytes_in, size)
        return
    layout = layouts(CONFIG)[region]
    turned = order == ElementOrder.K_MINOR
    for top in range(0, g.panels(lines) * g.edge, g.edge):
        there = min(g.edge, lines - top)
        for first in range(0, k, layout.chunk):
            ks = min(layout.chunk, k - first)
            rows = -(-ks // layout.ks)
            count = rows * layout.ks if turned else g.edge
            size = there if turned else ks
            for n in range(count):
                start = (first + n) * stride + top if turned else (top + n) * stride + first
                real = n < (ks if turned else there)
                yield {
                    "raw": 0, "b": region, "transposed": turned, "real": real,
                    "end": n == count - 1, "most": size - 1,
                    "final": n == count - 1 and top + g.edge >= lines and first + ks == k,
                    "place": g.panel_stream_words(ks) - (rows - 1) * layout.places - 1,
                    "granules": (layout.k_granules if turned else rows * layout.line_granules) - 1,
                }, (address + start, size) if real else None


@pytest.mark.parametrize("stall", [0, 0.6])
def test_walks(stall):
    """All of them, one behind the other."""
    g = memories(CONFIG)
    dut = AddressGenerator(data_bytes=4, geometries=g, layouts=layouts(CONFIG))
    due = [item for load in LOADS.values() for item in walk(*load)]
    stretches = [s for _, s in due if s]

    async def source(ctx):
        for region, lines, k, order, address, stride in LOADS.values():
            load = Load(region, 0, 1, g[region].panels(lines), g[region].panel_words(k))
            packed = Fetch(load, address, stride, lines, k, order).pack()
            while not ctx.get(dut.idle):
                await ctx.tick()
            put(ctx, dut.take, 1)
            for index in WORDS:
                put(ctx, dut.index, index)
                put(ctx, dut.word, int.from_bytes(packed[4 * index : 4 * index + 4], "little"))
                await ctx.tick()
            put(ctx, dut.take, 0)
            put(ctx, dut.start, 1)
            await ctx.tick()
            put(ctx, dut.start, 0)

    async def pieces(ctx):
        found = await receive(ctx, dut.pieces, len(due), stall=stall, seed=1)
        for n, (piece, (expected, stretch)) in enumerate(zip(found, due, strict=True)):
            if stretch:
                expected["offset"] = stretch[0] % 4
            assert {name: piece[name] for name in expected} == expected, f"piece {n}"
        await ticks(ctx, 10)
        assert ctx.get(dut.idle)

    async def reads(ctx):
        found = await receive(ctx, dut.stretches, len(stretches), stall=stall, seed=2)
        for n, (stretch, (address, size)) in enumerate(zip(found, stretches, strict=True)):
            last = (address % 64 + size - 1) // 4
            assert stretch == {"addr": address, "last": last}, f"stretch {n}"

    simulate(dut, source, pieces, reads, background=[
        checker(dut.pieces, "pieces"), checker(dut.stretches, "stretches")
    ], limit=20_000)
