"""The map store: writes within the limits only, the bytes of a chunk only, and the end of a job."""

import pytest
from network_core_output import network_core_of
from side_port import hardware_address

from verif.amaranth_bench import plain, put, simulate, ticks
from weft.hw.network_core.map_store import MapStore
from weft.network_core.latencies import CHUNK_STORE

CHIP = network_core_of(2, 4, 8, 2)


def stored(chunks, first, *, base=0, limit=CHIP.words):
    """Store chunks of one pixel; returns write, done and error of the cycle of each."""
    dut, found = MapStore(CHIP), []

    async def bench(ctx):
        put(ctx, dut.job.output, hardware_address(CHIP, first))
        for name, value in (("base", base), ("limit", limit), ("start", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
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
