"""Tests of the stream layouts, against byte-wise models of ``docs/interfaces.md``."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from weft.commands import Region
from weft.config import Config
from weft.dtypes import DTYPES
from weft.geometry import Operand, memories
from weft.host.packing import (
    ENTRY,
    LIMITS,
    Packers,
    PanelPacker,
    cut,
    pack,
    pack_entries,
    pack_results,
    pack_table,
    panel_slice,
    result_bytes,
    unpack,
)


def pack_by_hand(matrix, edge, depth, stream):
    """Word by word, byte by byte, in Python lists."""
    word_bytes, group = edge * depth, 1
    while group < 16 and 2 * group * word_bytes <= stream:
        group *= 2
    size, k = len(matrix), len(matrix[0])
    out = []
    for first in range(0, size, edge):
        words = []
        for start in range(0, k, depth):
            for row in range(first, first + edge):
                for at in range(start, start + depth):
                    words.append(matrix[row][at] % 256 if row < size and at < k else 0)
        for at in range(0, len(words), group * word_bytes):
            line = words[at : at + group * word_bytes]
            out += line + [0] * (-len(line) % stream)
    return bytes(out)


def results_by_hand(c, rows, cols, lanes, size, bytes_out):
    """Result words as a core of ``rows`` x ``cols`` sends them; 0x55 for padding."""
    out = b""
    for i in range(0, len(c), rows):
        for j in range(0, len(c[0]), cols):
            for row in c[i : i + rows]:
                part = row[j : j + cols]
                for at in range(0, len(part), lanes):
                    chunk = part[at : at + lanes]
                    chunk = b"".join((v % 256**size).to_bytes(size, "little") for v in chunk)
                    out += chunk.ljust(size * lanes, b"\x55")
    return out + b"\x55" * (-len(out) % bytes_out)


EDGES = st.integers(1, 13)
SIZES = st.integers(1, 40)
POWERS = st.sampled_from([1, 2, 4, 8, 16, 32, 64])


@settings(derandomize=True, deadline=None, max_examples=300)
@given(edge=EDGES, depth=st.integers(1, 9), stream=POWERS, r=SIZES, k=SIZES)
def test_packs_panels(edge, depth, stream, r, k):
    matrix = np.random.default_rng(r * k).integers(-128, 128, (r, k)).astype(np.int8)
    operand = Operand(edge, depth, 256, stream)
    assert pack(matrix, operand) == pack_by_hand(matrix.tolist(), edge, depth, stream)


@pytest.mark.parametrize("dtype", [bfloat16, np.float32])
@pytest.mark.parametrize("edge, stream", [(1, 16), (3, 2), (3, 16), (5, 4), (8, 64), (64, 1)])
@pytest.mark.parametrize("r, k", [(1, 1), (7, 18), (70, 3)])
def test_packs_values_of_any_size_low_byte_first(dtype, edge, stream, r, k):
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(r).integers(0, 1 << 8 * size, (k, r)).astype(f"u{size}")
    operand = Operand(edge, 1, 256, stream, size=size)
    # A value of ``size`` bytes lies in its panel like ``size`` values of k of one byte each.
    as_bytes = [[byte for x in row for byte in int(x).to_bytes(size, "little")] for row in bits.T]
    packed = pack(bits.view(dtype).T, operand)
    assert packed == pack_by_hand(as_bytes, edge, size, stream)


@pytest.mark.parametrize("page", [16, 1])
def test_cuts_parts_of_several_panels(page):
    operand = Operand(3, 2, 256, 16, page)
    matrix = np.random.default_rng(0).integers(-128, 128, (12, 70)).astype(np.int8)
    packed = pack(matrix, operand)
    assert bytes(cut(packed, operand, 70, 1, 2, 0, 35)) == pack(matrix[3:9], operand)
    assert bytes(cut(packed, operand, 70, 3, 1, 32, 3)) == pack(matrix[9:, 64:70], operand)
    for first, words in ((16, 16), (32, 3), (0, 16)):
        part = matrix[3:, 2 * first : 2 * (first + words)]
        assert bytes(cut(packed, operand, 70, 1, 3, first, words)) == pack(part, operand)


def test_packs_a_strided_matrix():
    matrix = np.arange(-60, 60).astype(np.int8).reshape(10, 12)[::2, ::3].T
    packed = pack(matrix, Operand(3, 2, 256, 4))
    assert packed == pack_by_hand(matrix.tolist(), 3, 2, 4)


@pytest.mark.parametrize(
    ("edge", "depth", "stream"), [(1, 1, 64), (3, 1, 16), (3, 5, 4), (4, 4, 16)]
)
def test_slices_panels_and_chunks(edge, depth, stream):
    operand = Operand(edge, depth, 256, stream)
    k, chunk = 40 * depth - depth // 2, 16 * depth
    matrix = np.random.default_rng(0).integers(-128, 128, (4 * edge, k)).astype(np.int8)
    packed = pack(matrix, operand)
    whole = panel_slice(operand, k, 1, 2, 0, operand.panel_words(k))
    assert packed[whole] == pack(matrix[edge : 3 * edge], operand)
    middle = panel_slice(operand, k, 2, 1, 16, 16)
    assert packed[middle] == pack(matrix[2 * edge : 3 * edge, chunk : 2 * chunk], operand)
    last = panel_slice(operand, k, 3, 1, 32, operand.panel_words(k) - 32)
    assert packed[last] == pack(matrix[3 * edge :, 2 * chunk :], operand)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    rows=EDGES, cols=EDGES, lanes=POWERS, bytes_out=POWERS, m=SIZES, n=SIZES,
    dtype=st.sampled_from([np.int32, np.int8, np.uint8, np.uint16]),
)
def test_unpacks_tiles(rows, cols, lanes, bytes_out, m, n, dtype):
    config = Config(rows=rows, cols=cols, lanes=lanes, bytes_out=bytes_out, requantize="none")
    limits = np.iinfo(dtype)
    c = np.random.default_rng(m * n).integers(limits.min, limits.max, (m, n), dtype, endpoint=True)
    data = results_by_hand(c.tolist(), rows, cols, lanes, c.itemsize, bytes_out)
    assert result_bytes(m, n, config, c.itemsize) == len(data)
    result = unpack(data, m, n, config, dtype)
    assert result.dtype == dtype
    assert result.tolist() == c.tolist()


@pytest.mark.parametrize("cols, lanes", [(5, 4), (8, 4), (3, 1), (2, 16), (13, 2)])
@pytest.mark.parametrize("bytes_in", [1, 16, 64])
@pytest.mark.parametrize("n", [1, 13, 40])
def test_packs_parameters(cols, lanes, bytes_in, n):
    config = Config(cols=cols, lanes=lanes, bytes_in=bytes_in, bytes_out=64)
    rng = np.random.default_rng(n)
    values = [
        [int(rng.integers(low, high)) for low, high in (
            (-(1 << 31), 1 << 31), (0, 1 << 31), (-31, 32), (-128, 128), *[(-128, 256)] * 3
        )]
        for _ in range(n)
    ]
    entries = np.array([tuple(value) for value in values], ENTRY)
    out, none = b"", bytes(DTYPES["int8"].parameter.size)
    for first in range(0, n, cols):
        packed = [DTYPES["int8"].parameter.pack(*value) for value in values[first : first + cols]]
        packed += [none] * (-(-cols // lanes) * lanes - len(packed))
        words = [b"".join(packed[at : at + lanes]) for at in range(0, len(packed), lanes)]
        # an operand of ``lanes`` rows and 16 values of k a word
        matrix = [
            [byte - 256 * (byte > 127) for word in words for byte in word[16 * e : 16 * e + 16]]
            for e in range(lanes)
        ]
        out += pack_by_hand(matrix, lanes, 16, bytes_in)
    operand = memories(config)[2]
    assert pack_entries(entries, operand, cols) == out
    chunks = -(-cols // lanes)
    last = (n - 1) // cols
    where = panel_slice(operand, 16 * chunks, last, 1, 0, chunks)
    assert out[where] == pack_entries(entries[last * cols :], operand, cols)


@pytest.mark.parametrize("bytes_in", [1, 4, 16, 64])
def test_packs_a_table(bytes_in):
    table = np.arange(256, dtype=np.uint8)[::-1]
    operand = memories(Config(bytes_in=bytes_in))[3]
    used = min(16, bytes_in)
    lines = [table.tobytes()[at : at + used].ljust(bytes_in, b"\0") for at in range(0, 256, used)]
    assert pack_table(table, operand) == pack_table(table.view(np.int8), operand) == b"".join(lines)


def test_unpacks_without_a_loop_over_rows():
    config = Config(rows=1, cols=1)
    data = bytes(result_bytes(450, 64, config, 4))
    start = time.process_time()
    unpack(data, 450, 64, config)
    unpacked = time.process_time() - start
    start = time.process_time()
    for _ in range(1000):
        unpack(data[:16], 1, 1, config)
    # 28,800 tiles at once take less than a thousand one by one.
    assert unpacked < time.process_time() - start


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_unpacks_floats_bit_by_bit(dtype):
    config = Config(dtype="bf16", rows=3, cols=5, bytes_out=8)
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(1).integers(0, 1 << 8 * size, (7, 13)).astype(f"u{size}")
    data = results_by_hand(bits.tolist(), 3, 5, 4, size, 8)
    assert result_bytes(7, 13, config, size) == len(data)
    result = unpack(data, 7, 13, config, dtype)
    assert result.dtype == dtype
    assert np.array_equal(result.view(f"u{size}"), bits)


@pytest.mark.parametrize("cols, lanes, words", [(5, 4, 2), (3, 8, 1), (4, 1, 4)])
def test_packs_limits(cols, lanes, words):
    config = Config(dtype="bf16", cols=cols, lanes=lanes, bytes_in=8)
    limits = np.array([(-n, n + 0.5) for n in range(cols + 1)], LIMITS)
    entries = [DTYPES["bf16"].parameter.pack(-n, n + 0.5) for n in range(cols + 1)]
    panel = words * lanes * 8
    want = b"".join(entries[:cols]).ljust(panel, b"\0") + entries[cols].ljust(panel, b"\0")
    assert pack_entries(limits, memories(config)[Region.PARAMETERS], cols) == want


def test_results_are_packed_by_tile_row_and_padded_chunk():
    config = Config(rows=2, cols=2, lanes=2, bytes_in=8, bytes_out=8)
    results = np.arange(1, 10, dtype="<u4").reshape(3, 3)
    words = [1, 2, 4, 5, 3, 0, 6, 0, 7, 8, 9, 0]  # 3, 6 and 9 are alone in their chunks
    assert pack_results(results, config) == np.array(words, "<u4").tobytes()
    assert pack_results(results[:1, :1].astype("u1"), config) == bytes([1]) + bytes(7)


def test_packers_are_used_again():
    """Matrices of the same shape in turn with others: no value of one is left in another."""
    rng, buffers = np.random.default_rng(1), memories(Config(rows=3, cols=5, depth=2))
    packers = Packers(buffers)
    shapes = [(4, 7), (3, 8), (7, 4), (1, 1), (4, 7), (300, 301)]
    for shape in 3 * shapes:
        matrix = rng.integers(-128, 128, shape, np.int8)
        for region in (Region.A, Region.B):
            assert packers.pack(region, matrix) == pack(matrix, buffers[region])
            assert packers.pack(region, matrix.T) == pack(matrix.T, buffers[region])


def test_packers_take_little_memory(monkeypatch):
    made = []
    monkeypatch.setattr(
        "weft.host.packing.PanelPacker", lambda *given: made.append(given) or PanelPacker(*given)
    )
    packers = Packers(memories(Config()))
    for rows in (*range(1, 33), 1, 33, 2, 1):  # 33 takes the place of 1, which was made first
        packers.pack(Region.A, np.zeros((rows, 3), np.int8))
    assert len(made) == 34
    for _ in range(2):  # too large to be kept
        packers.pack(Region.A, np.zeros((257, 256), np.int8))
    assert len(made) == 36
