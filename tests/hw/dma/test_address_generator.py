"""The address generator: the tasks of loads, and their read requests."""

import pytest
from tiers import quick

from verif.amaranth_bench import checker, put, receive, simulate, ticks
from weft.commands import Load, Region
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch
from weft.geometry import memories
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.descriptor_fetcher import CHECK_WORDS
from weft.hw.dma.layout import HALF_ROWS, layouts

CONFIG = Config(rows=2, cols=3, depth=2, bytes_in=4, bytes_out=4, activation="none")
LOADS = {
    # region, lines, k, order, address, stride
    "whole": (Region.A, 4, 8, ElementOrder.K_MAJOR, 100, 8),
    "ragged": (Region.B, 4, 5, ElementOrder.K_MAJOR, 101, 13),
    "k-minor": (Region.B, 4, 5, ElementOrder.K_MINOR, 101, 13),
    "backwards": (Region.A, 3, 3, ElementOrder.K_MAJOR, 1000, -9),
    "long": (Region.A, 3, 2 * HALF_ROWS * 2 + 3, ElementOrder.K_MAJOR, 7, 1100),
    "long-k-minor": (Region.A, 3, 2 * HALF_ROWS * 2 + 3, ElementOrder.K_MINOR, 7, 3),
    "exactly-a-half": (Region.B, 1, HALF_ROWS * 2, ElementOrder.K_MAJOR, 0, 1100),
    "packed": (Region.B, 7, 5, ElementOrder.PACKED, 400, 0),
    "parameters": (Region.PARAMETERS, 4, 1, ElementOrder.PACKED, 800, 0),
    "long-packed": (Region.B, 5, 2 * HALF_ROWS + 9, ElementOrder.PACKED, 4, 0),
}


def expected_tasks(region, lines, k, order, address, stride):
    """Yield the tasks of a load, each with its request (address, bytes) or None."""
    g = memories(CONFIG)[region]
    if order == ElementOrder.PACKED:
        rows = -(-g.panel_words(k) // g.group)
        segments = g.panels(lines) * g.segments
        for segment in range(segments):
            for first in range(0, rows, HALF_ROWS):
                size = min(HALF_ROWS, rows - first) * CONFIG.bytes_in
                yield {
                    "packed": 1, "has_data": 1, "last": 1, "last_row_end": 0,
                    "last_byte": size - 1,
                    "load_last": segment == segments - 1 and first + HALF_ROWS >= rows,
                    "last_word": size // layouts(CONFIG)[-1].pack_bytes - 1,
                }, (address + (segment * rows + first) * CONFIG.bytes_in, size)
        return
    layout = layouts(CONFIG)[region]
    k_minor = order == ElementOrder.K_MINOR
    for top in range(0, g.panels(lines) * g.edge, g.edge):
        panel_lines = min(g.edge, lines - top)
        for first in range(0, k, layout.slice_k):
            slice_k = min(layout.slice_k, k - first)
            rows = -(-slice_k // layout.row_k)
            count = rows * layout.row_k if k_minor else g.edge
            size = panel_lines if k_minor else slice_k
            words = layout.k_pack_words if k_minor else rows * layout.line_pack_words
            for n in range(count):
                offset = (first + n) * stride + top if k_minor else (top + n) * stride + first
                has_data = n < (slice_k if k_minor else panel_lines)
                last = n == count - 1
                yield {
                    "packed": 0, "operand_b": region, "k_minor": k_minor, "has_data": has_data,
                    "last": last, "last_byte": size - 1, "last_word": words - 1,
                    "load_last": last and top + g.edge >= lines and first + slice_k == k,
                    "last_row_end":
                        g.panel_stream_words(slice_k) - (rows - 1) * layout.row_words - 1,
                }, (address + offset, size) if has_data else None


@pytest.mark.parametrize("stall", quick(1, [0, 0.6]))
def test_loads(stall):
    """All loads, one after the other."""
    g = memories(CONFIG)
    dut = AddressGenerator(data_bytes=4, geometries=g, layouts=layouts(CONFIG))
    expected = [item for load in LOADS.values() for item in expected_tasks(*load)]
    expected_requests = [request for _, request in expected if request]

    async def source(ctx):
        for region, lines, k, order, address, stride in LOADS.values():
            load = Load(region, 0, 1, g[region].panels(lines), g[region].panel_words(k))
            packed = Fetch(load, address, stride, lines, k, order).pack()
            while not ctx.get(dut.idle):
                await ctx.tick()
            put(ctx, dut.take, 1)
            for index in CHECK_WORDS:
                put(ctx, dut.index, index)
                put(ctx, dut.word, int.from_bytes(packed[4 * index : 4 * index + 4], "little"))
                await ctx.tick()
            put(ctx, dut.take, 0)
            put(ctx, dut.start, 1)
            await ctx.tick()
            put(ctx, dut.start, 0)

    async def tasks(ctx):
        found = await receive(ctx, dut.tasks, len(expected), stall=stall, seed=1)
        for n, (task, (fields, request)) in enumerate(zip(found, expected, strict=True)):
            if request:
                fields["offset"] = request[0] % 4
            assert {name: task[name] for name in fields} == fields, f"task {n}"
        await ticks(ctx, 10)
        assert ctx.get(dut.idle)

    async def requests(ctx):
        found = await receive(ctx, dut.requests, len(expected_requests), stall=stall, seed=2)
        for n, (request, (addr, size)) in enumerate(zip(found, expected_requests, strict=True)):
            last_beat = (addr % 64 + size - 1) // 4
            assert request == {"addr": addr, "last_beat": last_beat}, f"request {n}"

    simulate(dut, source, tasks, requests, background=[
        checker(dut.tasks, "tasks"), checker(dut.requests, "requests")
    ], limit=20_000)
