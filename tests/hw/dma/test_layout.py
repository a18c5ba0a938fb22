"""Where values lie in the packing memory: as the stream has them; and how many a cycle."""

import numpy as np
import pytest

from weft.config import Config
from weft.host.packing import pack
from weft.hw.dma.layout import granule, layouts

CONFIGS = {
    "8x8x1": Config(),
    "8x8x1-8": Config(bytes_in=8),
    "3x5x2": Config(rows=3, cols=5, depth=2),
    "8x8x8": Config(rows=8, cols=8, depth=8, multiplier="plain"),
    "4x4x1-bf16": Config(dtype="bf16"),
    "2x6x4-4": Config(rows=2, cols=6, depth=4, bytes_in=4),
}


@pytest.mark.parametrize("name, count", [
    ("8x8x1", 2), ("8x8x1-8", 2), ("3x5x2", 1), ("8x8x8", 16), ("4x4x1-bf16", 2), ("2x6x4-4", 2),
])
def test_granules_leave_room(name, count):
    config = CONFIGS[name]
    assert granule(config) == count
    if count < config.bytes_in:  # twice what a product of 128^3 moves
        size = 2 * config.format.a.bytes + (config.format.acc.bytes if config.c_words else 0)
        assert count >= 2 * (128**2 * size) / (128**3 / config.peak)


def test_c_wants_larger_granules():
    sizes = {"rows": 8, "cols": 8, "dtype": "bf16"}
    assert granule(Config(**sizes, c_words=0)) == 4 and granule(Config(**sizes)) == 8


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_row_is_as_the_stream_has_it(config):
    for layout in layouts(config)[:2]:
        o = layout.operand
        values = np.arange(1, o.edge * layout.ks + 1).reshape(o.edge, -1) % 65521
        stream = pack(values.astype(f"<u{o.size}"), o)
        assert len(stream) == layout.bytes
        row = bytearray(layout.bytes)
        for byte, line, k, s in layout.lanes():
            row[byte] = int(values[line, k]).to_bytes(4, "little")[s]
        assert row == stream


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_granules_fill_a_row(config):
    for layout in layouts(config)[:2]:
        o = layout.operand
        assert layout.line_granules * layout.granule == layout.ks * o.size
        assert (layout.k_granules - 1) * layout.granule < o.edge * o.size
        assert o.edge * o.size <= layout.k_granules * layout.granule
