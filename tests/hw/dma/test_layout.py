"""Layouts of the packing memory: a row has the bytes of its stream words."""

import numpy as np
import pytest

from weft.config import Config
from weft.host.packing import pack
from weft.hw.dma.layout import layouts, pack_bytes

CONFIGS = {
    "8x8x1": Config(),
    "8x8x1-8": Config(bytes_in=8),
    "3x5x2": Config(rows=3, cols=5, depth=2),
    "8x8x8": Config(rows=8, cols=8, depth=8, multiplier="plain"),
    "4x4x1-bf16": Config(dtype="bf16"),
    "2x6x4-4": Config(rows=2, cols=6, depth=4, bytes_in=4),
}


@pytest.mark.parametrize("name, size", [
    ("8x8x1", 2), ("8x8x1-8", 2), ("3x5x2", 1), ("8x8x8", 16), ("4x4x1-bf16", 2), ("2x6x4-4", 2),
])
def test_pack_words_have_twice_the_rate_of_a_product(name, size):
    config = CONFIGS[name]
    assert pack_bytes(config) == size
    if size < config.bytes_in:  # the product is 128 x 128 x 128
        kind = config.data_type
        values = 2 * kind.a.bytes + (kind.acc.bytes if config.c_words else 0)
        assert size >= 2 * (128**2 * values) / (128**3 / config.peak)


def test_c_needs_larger_pack_words():
    sizes = {"rows": 8, "cols": 8, "dtype": "bf16"}
    assert pack_bytes(Config(**sizes, c_words=0)) == 4 and pack_bytes(Config(**sizes)) == 8


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_row_is_as_on_the_stream(config):
    for layout in layouts(config)[:2]:
        o = layout.operand
        values = np.arange(1, o.edge * layout.row_k + 1).reshape(o.edge, -1) % 65521
        stream = pack(values.astype(f"<u{o.size}"), o)
        assert len(stream) == layout.bytes
        row = bytearray(layout.bytes)
        for byte, line, k, s in layout.byte_map():
            row[byte] = int(values[line, k]).to_bytes(4, "little")[s]
        assert row == stream


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_pack_words_fill_a_row(config):
    for layout in layouts(config)[:2]:
        o = layout.operand
        assert layout.line_pack_words * layout.pack_bytes == layout.row_k * o.size
        assert (layout.k_pack_words - 1) * layout.pack_bytes < o.edge * o.size
        assert o.edge * o.size <= layout.k_pack_words * layout.pack_bytes
