"""Operands into panels and results out of tiles: the layouts of both streams, in numpy."""

import numpy as np

from weft.config import Config
from weft.geometry import Operand

__all__ = [
    "ENTRY", "LIMITS", "cut", "pack", "pack_entries", "pack_table", "panel_slice", "result_bytes",
    "unpack",
]

# What finishes a column: `weft.commands.PARAMETER` as numpy has it, of int8 and of bf16.
ENTRY = np.dtype([
    ("bias", "<i4"), ("multiplier", "<u4"), ("shift", "i1"), ("b_zero", "i1"),
    ("zero", "<i2"), ("low", "<i2"), ("high", "<i2"),
])
LIMITS = np.dtype([("low", "<f4"), ("high", "<f4")])


def pack(matrix: np.ndarray, operand: Operand) -> bytes:
    """All panels of a ``matrix`` [R, K] (A, or B or C transposed), as they follow a load."""
    size, k = matrix.shape
    panels, words = operand.panels(size), operand.panel_words(k)
    lines = -(-words // operand.group)
    # Values of any type move as the numbers that their bits are.
    padded = np.zeros(
        (panels * operand.edge, lines * operand.group * operand.depth), f"<u{operand.size}"
    )
    padded[:size, :k] = matrix.view(f"u{operand.size}")
    padded = padded.reshape(panels, operand.edge, lines * operand.group, operand.depth)
    moved = np.ascontiguousarray(padded.transpose(0, 2, 1, 3)).view(np.uint8)
    stream = np.zeros((panels, lines, operand.segments * operand.stream), np.uint8)
    used = operand.group * operand.word_bytes
    stream[:, :, :used] = moved.reshape(panels, lines, used)
    return stream.tobytes()


def pack_entries(entries: np.ndarray, operand: Operand, cols: int) -> bytes:
    """All panels of parameters, `ENTRY` or `LIMITS` [N], for panels of B of ``cols`` columns."""
    panels, chunks = -(-len(entries) // cols), -(-cols // operand.edge)
    whole = np.zeros(panels * cols, entries.dtype)
    whole[: len(entries)] = entries
    padded = np.zeros((panels, chunks * operand.edge), entries.dtype)
    padded[:, :cols] = whole.reshape(panels, cols)
    # A lane's entries are to the parameters what a row's values of k are to A.
    lanes = padded.reshape(panels, chunks, operand.edge).transpose(0, 2, 1)
    lanes = np.ascontiguousarray(lanes).view(np.int8)
    return pack(lanes.reshape(panels * operand.edge, chunks * entries.itemsize), operand)


def pack_table(table: np.ndarray, operand: Operand) -> bytes:
    """The one panel of an activation table, 256 entries of 8 bits."""
    return pack(table.view(np.int8)[None, :], operand)


def panel_slice(operand: Operand, k: int, panel: int, panels: int, word: int, words: int) -> slice:
    """Where in packed panels of ``k`` lie ``words`` words, from ``word`` on, of ``panels`` panels.

    That is one slice for whole panels, or for one panel from a page's first word on.
    """
    line = operand.segments * operand.stream
    start = panel * operand.panel_stream_words(k) * operand.stream + word // operand.group * line
    return slice(start, start + panels * -(-words // operand.group) * line)


def cut(packed, operand: Operand, k: int, panel: int, panels: int, word: int, words: int):
    """The bytes of any such part of ``packed`` panels: of parts of panels, one behind the other."""
    if panels == 1 or words == operand.panel_words(k):
        return packed[panel_slice(operand, k, panel, panels, word, words)]
    parts = range(panel, panel + panels)
    return b"".join(packed[panel_slice(operand, k, p, 1, word, words)] for p in parts)


def result_bytes(m: int, n: int, config: Config, size: int) -> int:
    """Bytes on the result stream of a job's [m, n] results of ``size`` bytes each."""
    total = m * _row_slots(n, config) * size
    return total + -total % config.bytes_out


def unpack(data: bytes, m: int, n: int, config: Config, dtype=np.int32) -> np.ndarray:
    """The [m, n] results of one job, of ``dtype``, from its words on the result stream.

    Tiles are of four kinds, whole or ragged in height and width; each kind moves at once.
    """
    dtype = np.dtype(dtype)
    row = _row_slots(n, config)
    results = np.frombuffer(data, f"<u{dtype.itemsize}", m * row)
    out = np.empty((m, n), f"u{dtype.itemsize}")
    start = 0
    for top, down, height in _kinds(m, config.rows):
        # `down` rows of tiles, one behind the other; in each, all tiles of its width
        band = results[start : (start := start + down * height * row)].reshape(down, -1)
        offset = 0
        for left, across, width in _kinds(n, config.cols):
            slots = _chunk_slots(width, config)
            tiles = band[:, offset : (offset := offset + across * height * slots)]
            tiles = tiles.reshape(down, across, height, slots)[..., :width].transpose(0, 2, 1, 3)
            out[top : top + down * height, left : left + across * width] = tiles.reshape(
                down * height, across * width
            )
    return out.view(dtype)


def _row_slots(n, config):
    """Results, padding included, that carry one row of ``n`` columns."""
    full, rest = divmod(n, config.cols)
    return full * _chunk_slots(config.cols, config) + _chunk_slots(rest, config)


def _chunk_slots(width, config):
    """Results, padding included, that carry ``width`` columns of one row of a tile."""
    return -(-width // config.lanes) * config.lanes


def _kinds(size, edge):
    """``(start, count, edge)`` of the whole tiles along ``size``, then of the ragged one."""
    full, rest = divmod(size, edge)
    if full:
        yield 0, full, edge
    if rest:
        yield full * edge, 1, rest
