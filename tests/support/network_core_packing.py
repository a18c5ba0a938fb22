"""Weights and parameters of a layer, packed into words of B and parameter lines."""

import struct
from dataclasses import dataclass

import numpy as np
from network_core_layers import scaling

from weft.golden import scaled
from weft.network_core.config import PARAMETER_BYTES

__all__ = ["PackedLayer", "pack_layer"]


@dataclass(frozen=True, kw_only=True)
class PackedLayer:
    """A layer in the buffers of a core, and the fields of its job that follow from that.

    Attributes
    ----------
    words : int8 [b_words, cols, depth]
        Its words of B.
    diagonal : bool
    source : int8 [vectors, depth]
        What a load of these words reads.
    lines : int8 [lines, bytes of a line]
        Its parameter lines; with ADD, one more follows.
    table : int8 [512, bytes of a word], or None
        Its ADD table.
    map_vectors : int
        Vectors of each pixel that the job reads.
    tap_vectors, tile_words, group_tiles, group_step, b_step : int
        Fields of the job; ``group_step`` in vectors.
    """

    words: np.ndarray
    diagonal: bool
    source: np.ndarray
    lines: np.ndarray
    table: np.ndarray | None
    map_vectors: int
    tap_vectors: int
    tile_words: int
    group_tiles: int
    group_step: int
    b_step: int


def pack_layer(config, layer) -> PackedLayer:
    """Pack a `network_core_layers.NetworkCoreLayer` for a `NetworkCoreConfig`."""
    channels = layer.x.shape[2]
    diagonal = layer.groups == channels == layer.columns
    tiles = -(-layer.columns // config.array.cols)
    if diagonal:
        taps, words, source = _diagonal(config, layer, tiles)
        group_tiles = max(1, config.array.depth // config.array.cols)
        vectors = -(-tiles // group_tiles) * taps
    else:
        taps, words = _dense(config, layer, tiles)
        group_tiles, vectors, source = tiles, taps, words
    tile_words = len(words) // tiles
    return PackedLayer(
        words=words, diagonal=diagonal, source=source.reshape(-1, config.array.depth),
        lines=_lines(config, layer, words), table=_table(config, layer), map_vectors=vectors,
        tap_vectors=taps,
        tile_words=tile_words, group_tiles=group_tiles, group_step=taps if diagonal else 0,
        b_step=tile_words if tiles > 1 else 0,
    )


def _dense(config, layer, tiles):
    """Vectors of a tap; words of B: for each tile, for each tap, for each vector."""
    cols, depth = config.array.cols, config.array.depth
    n, kh, kw, channels = layer.weights.shape
    taps = -(-channels // depth)
    padded = np.zeros((tiles * cols, kh * kw, taps * depth), np.int8)
    padded[:n, :, :channels] = layer.weights.reshape(n, kh * kw, channels)
    words = padded.reshape(tiles, cols, kh * kw * taps, depth).transpose(0, 2, 1, 3)
    return taps, np.ascontiguousarray(words).reshape(-1, cols, depth)


def _diagonal(config, layer, tiles):
    """Vectors of a tap; words of B; the vector of each word.

    Channel c is column ``c % cols`` of tile ``c // cols``, and byte ``c % depth`` of a vector.
    """
    cols, depth = config.array.cols, config.array.depth
    n, kh, kw, _ = layer.weights.shape
    taps = max(1, cols // depth)
    words = np.zeros((tiles, kh * kw, taps, cols, depth), np.int8)
    source = np.zeros((tiles, kh * kw, taps, depth), np.int8)
    for c in range(n):
        tile, vector = c // cols, c % cols // depth
        weights = layer.weights[c].reshape(-1)
        words[tile, :, vector, c % cols, c % depth] = weights
        source[tile, :, vector, c % depth] = weights
    return taps, words.reshape(-1, cols, depth), source


def _lines(config, layer, words):
    """Parameter lines: of all chunks of a row, then the one of ADD."""
    core, lanes = config.array, config.array.lanes
    tiles = -(-layer.columns // core.cols)
    bias = layer.bias
    if core.cell.corrected:
        wide = words.reshape(tiles, -1, core.cols, core.depth).astype(np.int64)
        pairs = (wide[..., 0::2] * wide[..., 1::2]).sum((1, 3)).reshape(-1)
        bias = bias - pairs[: layer.columns]
    columns = [
        _column(config, *values) for values in zip(bias, layer.multiplier, layer.shift, strict=True)
    ]
    columns += [bytes(PARAMETER_BYTES)] * (tiles * core.cols - layer.columns)
    if layer.addition:
        columns += [_column(config, 0, *layer.addition.scales[2])] * lanes
    size = config.line_vectors * core.depth
    lines = [
        b"".join(columns[at : at + lanes]).ljust(size, b"\0")
        for at in range(0, len(columns), lanes)
    ]
    return np.frombuffer(b"".join(lines), np.int8).reshape(-1, size)


def _column(config, bias, multiplier, shift):
    """The bytes of a column: bias, multiplier and shift, or bias, scale and 0."""
    bias = int(bias) & 0xFFFF_FFFF
    if config.array.requantize == "onnx":
        return struct.pack("<Ifb", bias, scaling("onnx", multiplier, shift)["scale"], 0)
    return struct.pack("<Iib", bias, multiplier, shift)


def _table(config, layer):
    """The scaled values of all bytes of the added map, then of all results."""
    add = layer.addition
    if not add:
        return None
    words = np.zeros((512, config.add_table_vectors * config.array.depth), np.int8)
    for first, zero, scale in ((0, add.zero, add.scales[0]), (256, layer.zero, add.scales[1])):
        values = np.arange(-128, 128)
        terms = values - zero
        if add.multiply:  # the upper half of a word has no meaning
            scaled_values = terms % (1 << 16) | 0x5A5A << 16
        else:
            scaled_values = scaled(terms << 20, **scaling(config.array.requantize, *scale))
        words[first + values % 256, :4] = np.frombuffer(
            scaled_values.astype("<i4").tobytes(), np.int8
        ).reshape(-1, 4)
    return words
