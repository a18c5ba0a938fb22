"""The added map: values in order whatever the port does, bounded reads, and no wrong read."""

import pytest
from network_core_output import network_core_of
from side_port import hardware_address

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.hw.network_core.output.output_section import AddedMap

CHIP = network_core_of(2, 4, 8, 2)
CHUNK = {
    "index": 0, "line": 0, "lane_last": 1, "row_end": 0, "tile_end": 0, "panel_end": 0, "last": 0,
}


async def start(ctx, dut, first, *, base=0, limit=CHIP.words):
    for name in ("add_input", "add_pixel_step", "add_row_step"):
        put(ctx, dut.job.fields[name], hardware_address(CHIP, first if name == "add_input" else 1))
    ctx.set(dut.job.fields.out_width, 1)
    ctx.set(dut.window.base, base)
    ctx.set(dut.window.limit, limit)
    await pulse(ctx, dut.job.start)
    put(ctx, dut.chunks.payload, CHUNK)
    ctx.set(dut.chunks.valid, 1)


def test_reads_stop_when_there_is_no_space():
    dut = AddedMap(CHIP)

    async def bench(ctx):
        await start(ctx, dut, 0)
        ctx.set(dut.reads.request.ready, 1)
        accepted = [(await ctx.tick().sample(dut.chunks.ready))[-1] for _ in range(40)]
        assert sum(accepted) == dut.space
        assert not ctx.get(dut.ready)
        ctx.set(dut.chunks.valid, 0)
        for n in range(dut.space):  # the data arrive
            first = 8 * (n % 16)
            ctx.set(dut.reads.data[0], int.from_bytes(range(first, first + 8), "little"))
            ctx.set(dut.reads.data_valid, 1)
            await ctx.tick()
        ctx.set(dut.reads.data_valid, 0)
        await ticks(ctx, 3)
        assert ctx.get(dut.ready)
        for n in range(dut.space):
            assert ctx.get(dut.added.valid)
            at = 8 * (n % 16) + 2 * (n % 4)  # chunks of two bytes
            assert list(ctx.get(dut.added.payload)) == [at, at + 1]
            ctx.set(dut.claim, 1)
            ctx.set(dut.added.ready, 1)
            await ctx.tick()
        ctx.set(dut.claim, 0)
        ctx.set(dut.added.ready, 0)
        assert not ctx.get(dut.ready)
        assert not ctx.get(dut.added.valid)
        ctx.set(dut.chunks.valid, 1)
        accepted = [(await ctx.tick().sample(dut.chunks.ready))[-1] for _ in range(40)]
        assert sum(accepted) == dut.space

    simulate(dut, bench)


@pytest.mark.parametrize("first, allowed", [
    (CHIP.banks * 5 - 1, 0), (CHIP.banks * 5, 1), (CHIP.banks * 9 - 1, 1), (CHIP.banks * 9, 0),
])
def test_no_read_beyond_the_limits(first, allowed):
    dut = AddedMap(CHIP)

    async def bench(ctx):
        await start(ctx, dut, first, base=5, limit=9)
        await ctx.tick()
        ctx.set(dut.chunks.valid, 0)
        ctx.set(dut.reads.request.ready, 1)
        reads = errors = 0
        for _ in range(10):
            _, _, valid, error = await ctx.tick().sample(dut.reads.request.valid, dut.address_error)
            reads, errors = reads + valid, errors + error
        assert (reads, errors) == (allowed, 1 - allowed)

    simulate(dut, bench)
