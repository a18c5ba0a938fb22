"""Granules gathered into rows; a half is filled while the other is read."""

import numpy as np
import pytest

from weft.config import Config
from weft.host.packing import pack
from weft.hw.dma.address_generator import PackTask
from weft.hw.dma.aligner import PackWord
from weft.hw.dma.layout import granule, layouts
from weft.hw.dma.packer import Packer
from weft.sim.amaranth_bench import put, simulate, ticks

CONFIGS = {
    "8x8x1": Config(),
    "3x5x2": Config(rows=3, cols=5, depth=2),
    "4x4x1-bf16": Config(dtype="bf16", bytes_in=8),
    "8x8x4": Config(depth=4, multiplier="plain"),
}


def granules(rng, layout, rows, turned):
    """A chunk of a panel, granule by granule, line by line or k by k; and the bytes that it is."""
    size = layout.granule
    if layout.places == layout.edge == layout.ks == 1:  # as it is
        values = rng.integers(0, 256, (1, rows * layout.size)).astype(np.uint8)
        due = values.tobytes()
    else:
        shape = layout.edge, rows * layout.ks
        values = rng.integers(1, 256**layout.size, shape).astype(f"<u{layout.size}")
        due = pack(values, layout.operand)
    lines = values.T if turned else values
    found = []
    for n, whole in enumerate(lines):
        data = np.ascontiguousarray(whole).tobytes()
        for index, start in enumerate(range(0, len(data), size)):
            part = [*data[start : start + size].ljust(size, b"\0")]
            found.append({"bytes": part, "index": index, "number": n, "end": 0})
    found[-1]["end"] = 1
    return found, due


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packs(config):
    """Chunks of both operands, in both orders, and raw ones; what pads a row is not looked at."""
    rng, lays = np.random.default_rng(1), layouts(config)
    piece = PackTask(data_bytes=config.bytes_in, layouts=lays)
    dut = Packer(
        granule=PackWord(granule=granule(config), piece=piece, pieces=1 << 13), layouts=lays,
        target="generic",
    )
    chunks = [
        (which, turned, rows) for rows in (1, 3)
        for which, turned in ((0, 0), (2, 0), (1, 0), (0, 1), (2, 0), (1, 1))
    ]
    made = [granules(rng, lays[which], rows, turned) for which, turned, rows in chunks]
    ends = [int(rng.integers(lays[which].places)) for which, _, _ in chunks]

    async def write(ctx):
        for (which, turned, _), (lot, _), place in zip(chunks, made, ends, strict=True):
            while not ctx.get(dut.room):
                await ctx.tick()
            ctx.set(dut.begin, 1)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            for one in lot:
                one |= {"b": which % 2, "transposed": turned, "raw": which // 2, "place": place}
                put(ctx, dut.granules, {"valid": 1, "granule": one})
                await ctx.tick()
                ctx.set(dut.granules.valid, 0)

    async def read(ctx):
        ctx.set(dut.en, 1)
        await ticks(ctx, 2_000)  # by then both halves are full, and nothing is written
        for (which, _, rows), (_, due), place in zip(chunks, made, ends, strict=True):
            layout = lays[which]
            while not ctx.get(dut.filled):
                await ctx.tick()
            told = ctx.get(dut.row), ctx.get(dut.place), ctx.get(dut.places)
            assert told == (rows - 1, place, layout.places - 1)
            found = bytearray()
            for n in range(rows * layout.places):
                row, part = divmod(n, layout.places)
                ctx.set(dut.address, row * dut.parts + part)
                ctx.set(dut.release, n == rows * layout.places - 1)
                await ctx.tick()
                ctx.set(dut.release, 0)
                await ctx.tick()
                found += ctx.get(dut.word).to_bytes(config.bytes_in, "little")
            used = b"\xff" * len(due)
            if which < 2:
                ones = np.full((layout.edge, rows * layout.ks), 256**layout.size - 1)
                used = pack(ones.astype(f"<u{layout.size}"), layout.operand)
            assert bytes(x & y for x, y in zip(found, used, strict=True)) == due
        await ticks(ctx, 3)
        assert not ctx.get(dut.filled) and ctx.get(dut.idle)

    simulate(dut, write, read, limit=20_000)
