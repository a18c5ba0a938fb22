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


@pytest.mark.parametrize("config", [
    network_core_of(4, 4, 4, 4, hop=2, two_rows=True),
    network_core_of(2, 2, 8, 2, hop=2, two_rows=True),
], ids=lambda config: config.array.name)
@pytest.mark.parametrize("together", [1, 0])
def test_pairs_of_pixels(config, together):
    """All chunks of a map of 3 x 4 pixels, in panels of 2 or 4 pixels with two tiles and a part."""
    core, banks = config.array, config.banks
    columns, height, width = 2 * core.cols + 1, 3, 4
    pitch, row_pitch, first = 2 * columns // core.depth + 2, 97, 40
    pitch += pitch % banks == 0
    pixels = [first + y * row_pitch + x * pitch for y in range(height) for x in range(width)]
    chunks, wanted = [], []
    for start in range(0, len(pixels), core.rows):
        panel = pixels[start : start + core.rows]
        for column in range(0, columns, core.cols):
            for row in range(0, len(panel), 1 + together):
                tile_end = row + 1 + together >= len(panel)
                panel_end = tile_end and column + core.cols >= columns
                chunks.append({
                    "index": 0, "line": 0, "row_end": 1, "tile_end": tile_end, "pair_end": 1,
                    "lane_last": min(core.lanes, columns - column) - 1, "panel_end": panel_end,
                    "last": panel_end and start + core.rows >= len(pixels),
                })
                wanted.append([panel[row + n] + column // core.depth for n in range(1 + together)])
    dut, found = MapStore(config), []

    async def bench(ctx):
        put(ctx, dut.window.limit, config.words)
        for name, value in (
            ("output", first), ("output_pixel_step", pitch),
            ("output_row_step", row_pitch - (width - 1) * pitch),
        ):
            put(ctx, getattr(dut.job.fields, name), hardware_address(config, value))
        put(ctx, dut.job.fields.out_width, width)
        put(ctx, dut.job.fields.two_rows, together)
        put(ctx, dut.job.start, 1)
        await ctx.tick()
        put(ctx, dut.job.start, 0)
        await ticks(ctx, 6)
        for now in range(len(chunks) + 3 + CHUNK_STORE):
            put(ctx, dut.request.valid, now < len(chunks))
            put(ctx, dut.request.chunk, chunks[min(now, len(chunks) - 1)])
            ctx.set(dut.results_next, 3 <= now < len(chunks) + 3)
            put(ctx, dut.results, [now % 128] * core.lanes)
            put(ctx, dut.second_results, [-(now % 128)] * core.lanes)
            ports = dut.write, dut.second_write, dut.done, dut.address_error
            found.append(list(map(plain, (await ctx.tick().sample(*ports))[2:])))

    simulate(dut, bench)
    stores = found[3 + CHUNK_STORE :]
    for number, (places, chunk, (write, second, done, error)) in enumerate(
        zip(wanted, chunks, stores, strict=True)
    ):
        assert (done, error, write["valid"]) == (number == len(chunks) - 1, 0, 1)
        assert second["valid"] == together
        value = (number + 3 + CHUNK_STORE) % 128
        for one, place, byte in zip((write, second), places, (value, -value % 256), strict=False):
            assert one["address"] == hardware_address(config, place)
            assert one["data"].to_bytes(core.depth, "little") == bytes([byte]) * core.depth
        assert write["enable"].bit_count() == chunk["lane_last"] + 1
        assert not together or second["enable"] == write["enable"]


@pytest.mark.parametrize("second_word, errors", [(4, 0), (5, 1)])
def test_no_second_write_beyond_the_limits(second_word, errors):
    config = network_core_of(2, 2, 8, 2, hop=2, two_rows=True)
    dut, found, banks = MapStore(config), [], config.banks
    ends = dict.fromkeys(("row_end", "tile_end", "panel_end", "last", "pair_end"), 1)

    async def bench(ctx):
        put(ctx, dut.window.limit, 5)
        step = (second_word - 3) * banks + 1
        put(ctx, dut.job.fields.output, hardware_address(config, 3 * banks))
        put(ctx, dut.job.fields.output_pixel_step, hardware_address(config, step))
        put(ctx, dut.job.fields.out_width, 2)
        put(ctx, dut.job.fields.two_rows, 1)
        put(ctx, dut.job.start, 1)
        await ctx.tick()
        put(ctx, dut.job.start, 0)
        await ticks(ctx, 6)
        for now in range(3 + CHUNK_STORE + 1):
            put(ctx, dut.request, {
                "valid": now == 0, "chunk": {"index": 0, "line": 0, "lane_last": 1, **ends},
            })
            ctx.set(dut.results_next, now == 3)
            ports = dut.write.valid, dut.second_write.valid, dut.done, dut.address_error
            found.append(list((await ctx.tick().sample(*ports))[2:]))

    simulate(dut, bench)
    assert found[-1] == [1, 1 - errors, 1, errors]


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
