"""Weights and parameters as the memory of a network core holds them."""

import numpy as np

from weft.network_core.config import NetworkCoreConfig

__all__ = ["COLUMN", "dense_words", "parameter_lines"]

# The parameters of a column.
COLUMN = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("shift", "i1")])


def dense_words(
    weights: np.ndarray, tap_vectors: int, tiles: int, config: NetworkCoreConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of B of a layer whose columns read all channels, and their pair sums.

    The pair sum of a column is ``sum(w[2i] * w[2i + 1])`` over its weights: the sums of a
    `corrected` MAC cell contain it.

    Parameters
    ----------
    weights : int8 [taps, channels, columns]
    tap_vectors : int
        Vectors of a tap.
    tiles : int
        Tiles of columns.
    config : NetworkCoreConfig

    Returns
    -------
    (int8 [tiles, vectors, depth], int64 [columns])
        The vectors of a word follow each other, the words of a tile too: for tap: for vector.
    """
    cols, depth = config.array.cols, config.array.depth
    taps, channels, columns = weights.shape
    whole = np.zeros((taps, tap_vectors * depth, tiles * cols), np.int8)
    whole[:, :channels, :columns] = weights
    whole = whole.reshape(taps, tap_vectors, depth, tiles, cols)
    words = whole.transpose(3, 0, 1, 4, 2)  # tile, tap, vector, column, byte
    wide = words[..., : depth // 2 * 2].astype(np.int64)
    pairs = (wide[..., 0::2] * wide[..., 1::2]).sum((1, 2, 4)).reshape(-1)[:columns]
    return words.reshape(tiles, -1, depth), pairs


def parameter_lines(columns: np.ndarray, config: NetworkCoreConfig) -> np.ndarray:
    """Return `COLUMN` [lines * lanes] as parameter lines, uint8 [lines, bytes]."""
    lanes, size = config.array.lanes, config.array.lanes * COLUMN.itemsize
    lines = np.zeros((len(columns) // lanes, config.line_vectors * config.array.depth), np.uint8)
    used = np.frombuffer(columns.tobytes(), np.uint8)
    lines[:, :size] = used.reshape(len(lines), size)
    return lines
