"""Blocks of a matrix product that fit the memory and the buffers of a network core."""

import math
from dataclasses import dataclass

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import DESCRIPTOR_BYTES

__all__ = ["LOG_BYTES", "BlockSizes", "block_sizes", "map_pitch", "whole_vectors"]

LOG_BYTES = 8  # of an entry of the log
DESCRIPTORS = 4  # of a list: two loads, a job, the end
_MAX_ROWS = (1 << 16) - 1  # pixels of a row of a map


@dataclass(frozen=True)
class BlockSizes:
    """The largest block of a product, and its places in its part of the memory, in vectors.

    Attributes
    ----------
    rows : int
        Rows of A.
    words : int
        Vectors of K.
    tiles : int
        Tiles of N.
    log, a, source, output : int
        First vectors of the log, of the rows of A, of what the loads read, and of the results. The
        list is at vector 0.
    """

    rows: int
    words: int
    tiles: int
    log: int
    a: int
    source: int
    output: int


def map_pitch(config: NetworkCoreConfig, vectors: int) -> int:
    """Return the vectors from row to row of A: neighbours lie in different banks."""
    pitch = vectors
    while config.array.rows > 1 and math.gcd(pitch, config.banks) > 1:
        pitch += 1
    return pitch


def whole_vectors(config: NetworkCoreConfig, m: int, k: int, n: int, size: int) -> int:
    """Return the vectors with which the memory does not limit the blocks of a product.

    Arguments are as for `block_sizes`.
    """
    core, depth = config.array, config.array.depth
    all_words = -(-k // depth)
    words = _even(all_words, min(all_words, config.b_words))
    most = max(1, min(config.b_words // words, config.lines // config.row_chunks))
    tiles = _even(-(-n // core.cols), min(-(-n // core.cols), most))
    row = map_pitch(config, words) + -(-min(n, tiles * core.cols) * size // depth)
    source = tiles * (words * core.cols + config.row_chunks * config.line_vectors)
    fixed = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth) + -(-LOG_BYTES // depth)
    return fixed + max(2 * source, source + min(m, _MAX_ROWS) * row)


def block_sizes(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int, vectors: int | None = None
) -> BlockSizes:
    """Return the blocks of ``C[m, n] = A[m, k] x B[k, n]`` with results of ``size`` bytes.

    K is divided only if a tile does not fit. A block of B takes at most half of the memory, if that
    is enough for a tile. The product may use ``vectors`` of the memory; None: all.

    Raises ValueError if the memory or a buffer is too small for any product.
    """
    core, depth = config.array, config.array.depth
    log = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth)
    vectors = config.vectors if vectors is None else vectors
    space = vectors - log - -(-LOG_BYTES // depth)
    all_words, all_tiles = -(-k // depth), -(-n // core.cols)
    lines = config.row_chunks * config.line_vectors  # vectors of the parameter lines of a tile

    def output(tiles):  # vectors of a row of results
        return -(-min(n, tiles * core.cols) * size // depth)

    def source(words, tiles):
        return tiles * (words * core.cols + lines)

    def most_rows(words, tiles):
        row = map_pitch(config, words) + output(tiles)
        return min((space - source(words, tiles)) // row, m, _MAX_ROWS)

    wanted = min(core.rows, m)
    words = next((
        words for rows in (wanted, 1) for words in range(min(all_words, config.b_words), 0, -1)
        if most_rows(words, 1) >= rows
    ), 0)
    if not words or config.row_chunks > config.lines:
        raise ValueError(
            f"a network core must have a memory and buffers for a product of one tile, not"
            f" {vectors * depth} bytes and {config.lines} lines"
        )
    words = _even(all_words, words)
    fits = [
        tiles for tiles in range(1, min(all_tiles, config.b_words // words) + 1)
        if tiles * config.row_chunks <= config.lines and source(words, tiles) <= space // 2
        and most_rows(words, tiles) >= wanted
    ]
    tiles = _even(all_tiles, max(fits, default=1))
    rows = _even(m, most_rows(words, tiles))
    a = log + -(-LOG_BYTES // depth)
    first_source = a + rows * map_pitch(config, words)
    return BlockSizes(
        rows=rows, words=words, tiles=tiles, log=log, a=a, source=first_source,
        output=first_source + source(words, tiles),
    )


def _even(total, most):
    """Return the size of blocks of at most ``most``, as even as possible."""
    return -(-total // -(-total // most))
