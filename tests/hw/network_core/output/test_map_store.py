"""The map store: writes within the limits, the bytes and the parts of a chunk, the end of a job."""

import pytest
from network_core_output import network_core_of
from side_port import hardware_address

from verif.amaranth_bench import plain, put, simulate, ticks
from weft.hw.network_core.output.map_store import MapStore, SumParts
from weft.network_core.latencies import CHUNK_STORE

CHIP = network_core_of(2, 4, 8, 2)


def stored(chunks, first, *, base=0, limit=CHIP.words):
    """Store chunks of one pixel; returns write, done and error of the cycle of each."""
    dut, found = MapStore(CHIP), []

    async def bench(ctx):
        put(ctx, dut.job.fields.output, hardware_address(CHIP, first))
        for port, value in (
            (dut.window.base, base), (dut.window.limit, limit), (dut.job.start, 1),
        ):
            ctx.set(port, value)
        await ctx.tick()
        ctx.set(dut.job.start, 0)
        for number, lane_last in enumerate(chunks):
            end = number == len(chunks) - 1
            put(ctx, dut.request, {"valid": 1, "chunk": {
                "index": 0, "line": 0, "lane_last": lane_last, "row_end": end, "tile_end": end,
                "panel_end": end, "last": end,
            }})
            await ctx.tick()
        ctx.set(dut.request.valid, 0)
        await ticks(ctx, 4)
        for now in range(len(chunks) + CHUNK_STORE + 3):
            ctx.set(dut.results_next, now < len(chunks))
            put(ctx, dut.results, [now, -now])
            ports = dut.write, dut.done, dut.address_error
            _, _, write, done, error = await ctx.tick().sample(*ports)
            found.append((plain(write), done, error))

    simulate(dut, bench)
    quiet = found[:CHUNK_STORE] + found[CHUNK_STORE + len(chunks) :]
    assert not any(write["valid"] or done or error for write, done, error in quiet)
    return found[CHUNK_STORE : CHUNK_STORE + len(chunks)]


def test_bytes_of_chunks():
    found = stored([1, 1, 0], 8)
    address = hardware_address(CHIP, 8)
    for number, (write, done, error) in enumerate(found):
        assert (write["valid"], write["address"], error) == (1, address, 0)
        assert done == (number == 2)
        assert write["enable"] == [0b11, 0b1100, 0b10000][number]
        now = number + CHUNK_STORE
        assert write["data"].to_bytes(8, "little") == bytes([now, 256 - now] * 4)


@pytest.mark.parametrize("first, allowed", [
    (CHIP.banks * 5 - 1, 0), (CHIP.banks * 5, 1), (CHIP.banks * 9 - 1, 1), (CHIP.banks * 9, 0),
    (-1, 0),
])
def test_no_write_beyond_the_limits(first, allowed):
    ((write, done, error),) = stored([1], first, base=5, limit=9)
    assert (write["valid"], done, error) == (allowed, 1, 1 - allowed)


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
