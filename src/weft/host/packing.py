"""Operands into panels and results out of tiles: the layouts of both streams, in numpy."""

import numpy as np

from weft.config import Config
from weft.geometry import Operand

__all__ = ["pack", "panel_slice", "result_bytes", "unpack"]


def pack(matrix: np.ndarray, operand: Operand) -> bytes:
    """All panels of an int8 ``matrix`` [R, K] (A, or B transposed), as they follow a load."""
    size, k = matrix.shape
    panels, words = operand.panels(size), operand.panel_words(k)
    lines = -(-words // operand.group)
    padded = np.zeros((panels * operand.edge, lines * operand.group * operand.depth), np.int8)
    padded[:size, :k] = matrix
    padded = padded.reshape(panels, operand.edge, lines * operand.group, operand.depth)
    stream = np.zeros((panels, lines, operand.segments * operand.stream), np.int8)
    used = operand.group * operand.word_bytes
    stream[:, :, :used] = padded.transpose(0, 2, 1, 3).reshape(panels, lines, used)
    return stream.tobytes()


def panel_slice(operand: Operand, k: int, panel: int, panels: int, word: int, words: int) -> slice:
    """Where in packed panels of ``k`` lie ``words`` words, from ``word`` on, of ``panels`` panels.

    That is one slice for whole panels, or for one panel from a page's first word on.
    """
    line = operand.segments * operand.stream
    start = panel * operand.panel_stream_words(k) * operand.stream + word // operand.group * line
    return slice(start, start + panels * -(-words // operand.group) * line)


def result_bytes(m: int, n: int, config: Config) -> int:
    """Bytes on the result stream of a job's [m, n] results."""
    full, rest = divmod(n, config.cols)
    return 4 * m * (full * _row_slots(config.cols, config) + _row_slots(rest, config))


def unpack(data: bytes, m: int, n: int, config: Config) -> np.ndarray:
    """The [m, n] results of one job, int32, from its words on the result stream.

    Tiles are of four kinds, whole or ragged in height and width; each kind moves at once.
    """
    words = np.frombuffer(data, "<i4")
    out = np.empty((m, n), np.int32)
    start = 0
    for top, down, height in _kinds(m, config.rows):
        # `down` rows of tiles, one behind the other; in each, all tiles of its width
        band = words[start : (start := start + down * height * result_bytes(1, n, config) // 4)]
        band = band.reshape(down, -1)
        offset = 0
        for left, across, width in _kinds(n, config.cols):
            slots = _row_slots(width, config)
            tiles = band[:, offset : (offset := offset + across * height * slots)]
            tiles = tiles.reshape(down, across, height, slots)[..., :width].transpose(0, 2, 1, 3)
            out[top : top + down * height, left : left + across * width] = tiles.reshape(
                down * height, across * width
            )
    return out


def _row_slots(width, config):
    """Results, padding included, that carry ``width`` columns of one row of a tile."""
    return -(-width // config.lanes) * config.lanes


def _kinds(size, edge):
    """``(start, count, edge)`` of the whole tiles along ``size``, then of the ragged one."""
    full, rest = divmod(size, edge)
    if full:
        yield 0, full, edge
    if rest:
        yield full * edge, 1, rest
