"""The parts of sums: bytes, ends, and the slot of each, for whole and partial chunks."""

import pytest
from network_core_output import network_core_of

from verif.amaranth_bench import plain, put, simulate, ticks
from weft.hw.network_core.sum_parts import SumParts
from weft.network_core.latencies import CHUNK_STORE

ENDS = "row_end", "tile_end", "panel_end", "last"


def parts_of(config, chunks):
    """Send chunks of (sums, lane_last, ends), four slots apart; return (cycle, part, bytes)."""
    dut, period, found = SumParts(config), 4 * config.array.scale_cycles, []

    async def bench(ctx):
        parts, values = [], []
        for sums, lane_last, ends in [*chunks, (None, 0, 0)]:
            for cycle in range(period):
                put(ctx, dut.next, sums is not None and cycle == 0)
                put(ctx, dut.chunk, {
                    "index": 0, "line": 3, "lane_last": lane_last, **dict.fromkeys(ENDS, ends),
                })
                put(ctx, dut.sums, sums if sums and cycle == 1 else [-1] * config.array.lanes)
                ports = dut.part, dut.take, dut.bytes
                _, _, part, take, data = await ctx.tick().sample(*ports)
                parts.append((plain(part), take))
                values.append(data)
        for _ in range(CHUNK_STORE):
            values.append((await ctx.tick().sample(dut.bytes))[-1])
        for now, (part, take) in enumerate(parts):
            if part["valid"]:
                assert take == (part["chunk"]["row_end"] or now % period == period * 3 // 4)
                found.append((now, part["chunk"], values[now + CHUNK_STORE]))
            else:
                assert not take
        await ticks(ctx, 1)

    simulate(dut, bench)
    return found


@pytest.mark.parametrize("lanes, cycles", [(8, 1), (4, 2), (2, 1), (1, 4)])
def test_parts_of_whole_and_partial_chunks(lanes, cycles):
    config = network_core_of(2, 8, 8, lanes, scale_cycles=cycles)
    sums = [[(lane * 0x01020304 + number) % (1 << 31) for lane in range(1, lanes + 1)]
            for number in range(lanes + 2)]
    # A whole chunk that is not the end of its row; then the last chunks of rows, with 1..lanes
    # columns, and a whole one again.
    lane_lasts = [lanes - 1, *range(lanes), lanes - 1]
    chunks = [(values, lane_last, number > 0)
              for number, (values, lane_last) in enumerate(zip(sums, lane_lasts, strict=True))]
    expected = []
    for number, (values, lane_last, ends) in enumerate(chunks):
        raw = b"".join(value.to_bytes(4, "little") for value in values)
        count = 4 * (lane_last + 1)
        for part, first in enumerate(range(0, count, lanes)):
            last = ends and first + lanes >= count
            expected.append((
                (4 * number + part) * cycles,
                {"index": 0, "line": 3, "lane_last": min(lanes, count - first) - 1,
                 **dict.fromkeys(ENDS, int(last))},
                int.from_bytes(raw[first : first + lanes], "little"),
            ))
    assert parts_of(config, chunks) == expected
