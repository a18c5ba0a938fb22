"""The packer: pack words become rows; one half is filled while the other is read."""

import numpy as np
import pytest

from verif.amaranth_bench import pulse, put, simulate, ticks
from weft.config import Config
from weft.host.packing import pack
from weft.hw.dma.address_generator import PackTask
from weft.hw.dma.layout import layouts, pack_bytes
from weft.hw.dma.packer import Packer, PackWord

CONFIGS = {
    "8x8x1": Config(),
    "3x5x2": Config(rows=3, cols=5, depth=2),
    "4x4x1-bf16": Config(dtype="bf16", bytes_in=8),
    "8x8x4": Config(depth=4, multiplier="plain"),
}


def pack_words(rng, layout, rows, k_minor):
    """The pack words of a slice, line by line or k by k; and the bytes that they become."""
    size = layout.pack_bytes
    if layout.row_words == layout.edge == layout.row_k == 1:  # PACKED
        values = rng.integers(0, 256, (1, rows * layout.size)).astype(np.uint8)
        expected = values.tobytes()
    else:
        shape = layout.edge, rows * layout.row_k
        values = rng.integers(1, 256**layout.size, shape).astype(f"<u{layout.size}")
        expected = pack(values, layout.operand)
    words = []
    for n, line in enumerate(values.T if k_minor else values):
        data = np.ascontiguousarray(line).tobytes()
        for index, start in enumerate(range(0, len(data), size)):
            part = [*data[start : start + size].ljust(size, b"\0")]
            words.append({"bytes": part, "index": index, "task": n, "last": 0})
    words[-1]["last"] = 1
    return words, expected


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packs(config):
    """Slices of both operands in both orders, and PACKED ones; padding of a row is not checked."""
    rng, all_layouts = np.random.default_rng(1), layouts(config)
    task = PackTask(data_bytes=config.bytes_in, layouts=all_layouts)
    dut = Packer(
        pack_word=PackWord(pack_bytes=pack_bytes(config), task=task, max_tasks=1 << 13),
        layouts=all_layouts, target="generic",
    )
    slices = [
        (which, k_minor, rows) for rows in (1, 3)
        for which, k_minor in ((0, 0), (2, 0), (1, 0), (0, 1), (2, 0), (1, 1))
    ]
    contents = [
        pack_words(rng, all_layouts[which], rows, k_minor) for which, k_minor, rows in slices
    ]
    ends = [int(rng.integers(all_layouts[which].row_words)) for which, _, _ in slices]

    async def write(ctx):
        for (which, k_minor, _), (words, _), end in zip(slices, contents, ends, strict=True):
            while not ctx.get(dut.room):
                await ctx.tick()
            await pulse(ctx, dut.claim)
            for word in words:
                word |= {
                    "operand_b": which % 2, "k_minor": k_minor, "packed": which // 2,
                    "last_row_end": end,
                }
                put(ctx, dut.words, {"valid": 1, "word": word})
                await ctx.tick()
                ctx.set(dut.words.valid, 0)

    async def read(ctx):
        ctx.set(dut.half.enable, 1)
        await ticks(ctx, 2_000)  # by then both halves are full, and nothing is written
        for (which, _, rows), (_, expected), end in zip(slices, contents, ends, strict=True):
            layout = all_layouts[which]
            while not ctx.get(dut.half.filled):
                await ctx.tick()
            half = dut.half
            found_ends = tuple(map(ctx.get, (half.last_row, half.last_row_end, half.row_end)))
            assert found_ends == (rows - 1, end, layout.row_words - 1)
            found = bytearray()
            for n in range(rows * layout.row_words):
                row, index = divmod(n, layout.row_words)
                ctx.set(dut.half.address, row * dut.row_words + index)
                ctx.set(dut.half.release, n == rows * layout.row_words - 1)
                await ctx.tick()
                ctx.set(dut.half.release, 0)
                await ctx.tick()
                found += ctx.get(dut.half.data).to_bytes(config.bytes_in, "little")
            used = b"\xff" * len(expected)
            if which < 2:
                ones = np.full((layout.edge, rows * layout.row_k), 256**layout.size - 1)
                used = pack(ones.astype(f"<u{layout.size}"), layout.operand)
            assert bytes(x & y for x, y in zip(found, used, strict=True)) == expected
        await ticks(ctx, 3)
        assert not ctx.get(dut.half.filled) and ctx.get(dut.idle)

    simulate(dut, write, read, limit=20_000)
