"""Granules gathered into rows; a half is filled while the other is read."""

import numpy as np
import pytest

from weft.config import Config
from weft.host.packing import pack
from weft.hw.dma.aligner import Granule
from weft.hw.dma.layout import granule, layouts
from weft.hw.dma.packer import Packer
from weft.hw.dma.walker import Piece
from weft.sim.amaranth_bench import put, simulate, ticks

CONFIGS = {
    "8x8x1": Config(),
    "3x5x2": Config(rows=3, cols=5, depth=2),
    "4x4x1-bf16": Config(dtype="bf16", bytes_in=8),
    "8x8x4": Config(depth=4, multiplier="plain"),
}


def granules(layout, values, turned):
    """A chunk of a panel, granule by granule: line by line, or k by k."""
    edge, size = layout.operand.edge, layout.granule
    for n, whole in enumerate(values.T if turned else values):
        data = np.ascontiguousarray(whole).tobytes()
        for index, start in enumerate(range(0, len(data), size)):
            end = n == (values.shape[1] if turned else edge) - 1 and start + size >= len(data)
            part = [*data[start : start + size].ljust(size, b"\0")]
            yield {"bytes": part, "index": index, "number": n, "end": int(end)}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packs(config):
    """Chunks of both operands, in both orders; what the row pads is not looked at."""
    rng, lays = np.random.default_rng(1), layouts(config)
    piece = Piece(data_bytes=config.bytes_in, layouts=lays)
    dut = Packer(
        granule=Granule(granule=granule(config), piece=piece, pieces=1 << 13), layouts=lays
    )
    chunks = [(b, turned, rows) for rows in (1, 3) for b in (0, 1) for turned in (0, 1)]
    made = []
    for b, _, rows in chunks:
        shape = lays[b].operand.edge, rows * lays[b].ks
        values = rng.integers(1, 1 << 8 * lays[b].operand.size, shape)
        made.append(values.astype(f"<u{lays[b].operand.size}"))

    async def write(ctx):
        for (b, turned, _), values in zip(chunks, made, strict=True):
            while not ctx.get(dut.room):
                await ctx.tick()
            ctx.set(dut.begin, 1)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            for one in granules(lays[b], values, turned):
                one |= {"b": b, "transposed": turned}
                put(ctx, dut.granules, {"valid": 1, "granule": one})
                await ctx.tick()
                ctx.set(dut.granules.valid, 0)

    async def read(ctx):
        ctx.set(dut.en, 1)
        await ticks(ctx, 2_000)  # by then both halves are full, and nothing is written
        for (b, _, rows), values in zip(chunks, made, strict=True):
            while not ctx.get(dut.filled):
                await ctx.tick()
            found = bytearray()
            for row in range(rows):
                ctx.set(dut.row, row)
                ctx.set(dut.release, row == rows - 1)
                await ctx.tick()
                ctx.set(dut.release, 0)
                await ctx.tick()
                word = ctx.get(dut.word).to_bytes(dut.width, "little")
                found += word[: lays[b].bytes]
            used = pack(np.ones_like(values) * (256**values.itemsize - 1), lays[b].operand)
            assert bytes(x & y for x, y in zip(found, used, strict=True)) == pack(
                values, lays[b].operand
            )
        await ticks(ctx, 3)
        assert not ctx.get(dut.filled)

    simulate(dut, write, read, limit=20_000)
