"""Blocks of a matrix product that fit the memories and the buffers of a network core."""

import math
from dataclasses import dataclass

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import DESCRIPTOR_BYTES

__all__ = ["BlockSizes", "ProductSpace", "block_sizes", "map_pitch", "whole_space"]

LOG_BYTES = 8  # of an entry of the log
DESCRIPTORS = 4  # of a list: two loads, a job, the end
_MAX_ROWS = (1 << 16) - 1  # pixels of a row of a map


@dataclass(frozen=True)
class ProductSpace:
    """The parts of the memories of a network core that products use, in vectors.

    Attributes
    ----------
    first, vectors : int
        First vector in the memory on the chip, and vectors. A and the results lie there; without a
        program memory all the rest, too.
    program_first, program_vectors : int
        Of the program memory: for lists, their log, and what they load. 0 without one.
    """

    first: int
    vectors: int
    program_first: int = 0
    program_vectors: int = 0

    @classmethod
    def whole(cls, config: NetworkCoreConfig, program_bytes: int | None = None) -> "ProductSpace":
        """Return all of both memories; a program memory may have fewer bytes than the core allows.
        """
        size = config.program_bytes if program_bytes is None else program_bytes
        return cls(0, config.vectors, 0, size // config.array.depth)

    def list_first(self, config: NetworkCoreConfig) -> int:
        """Return the first vector of the part with the lists."""
        return self.program_first if config.program_words else self.first


@dataclass(frozen=True)
class BlockSizes:
    """The largest block of a product, and its places in the `ProductSpace`, in vectors.

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
        list is at vector 0. List, log and source lie in the program memory, if there is one.
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


def whole_space(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int
) -> tuple[int, int]:
    """Return the vectors with which the memories do not limit the blocks of a product.

    They are ``vectors`` and ``program_vectors`` of a `ProductSpace`. Arguments are as for
    `block_sizes`.
    """
    core, depth = config.array, config.array.depth
    all_words = -(-k // depth)
    words = _even(all_words, min(all_words, config.b_words))
    most = max(1, min(config.b_words // words, config.lines // config.row_chunks))
    tiles = _even(-(-n // core.cols), min(-(-n // core.cols), most))
    row = map_pitch(config, words) + -(-min(n, tiles * core.cols) * size // depth)
    source = tiles * (words * core.cols + config.row_chunks * config.line_vectors)
    maps = min(m, _MAX_ROWS) * row
    if config.program_words:
        return maps, _fixed(config) + source
    return _fixed(config) + max(2 * source, source + maps), 0


def block_sizes(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int, space: ProductSpace | None = None
) -> BlockSizes:
    """Return the blocks of ``C[m, n] = A[m, k] x B[k, n]`` with results of ``size`` bytes.

    K is divided only if a tile does not fit. Beside A, a block of B takes at most half of the
    memory, if that is enough for a tile. Without a ``space`` the product may use all.

    Raises ValueError if a memory or a buffer is too small for any product.
    """
    core, depth = config.array, config.array.depth
    space = space or ProductSpace.whole(config)
    log, fixed = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth), _fixed(config)
    in_program = config.program_words > 0
    for_maps = space.vectors if in_program else space.vectors - fixed
    most_source = space.program_vectors - fixed if in_program else for_maps // 2
    all_words, all_tiles = -(-k // depth), -(-n // core.cols)
    lines = config.row_chunks * config.line_vectors  # vectors of the parameter lines of a tile

    def output(tiles):  # vectors of a row of results
        return -(-min(n, tiles * core.cols) * size // depth)

    def source(words, tiles):
        return tiles * (words * core.cols + lines)

    def most_rows(words, tiles):
        row, taken = map_pitch(config, words) + output(tiles), source(words, tiles)
        if not in_program:
            return min((for_maps - taken) // row, m, _MAX_ROWS)
        return min(for_maps // row, m, _MAX_ROWS) if taken <= most_source else 0

    wanted = min(core.rows, m)
    words = next((
        words for rows in (wanted, 1) for words in range(min(all_words, config.b_words), 0, -1)
        if most_rows(words, 1) >= rows
    ), 0)
    if not words or config.row_chunks > config.lines:
        program = f", {space.program_vectors * depth} bytes of program memory" * in_program
        raise ValueError(
            f"a network core must have a memory and buffers for a product of one tile, not"
            f" {space.vectors * depth} bytes{program} and {config.lines} lines"
        )
    words = _even(all_words, words)
    fits = [
        tiles for tiles in range(1, min(all_tiles, config.b_words // words) + 1)
        if tiles * config.row_chunks <= config.lines and source(words, tiles) <= most_source
        and most_rows(words, tiles) >= wanted
    ]
    tiles = _even(all_tiles, max(fits, default=1))
    rows = _even(m, most_rows(words, tiles))
    maps = rows * map_pitch(config, words)
    if in_program:
        return BlockSizes(
            rows=rows, words=words, tiles=tiles, log=log, a=0, source=fixed, output=maps
        )
    first_source = fixed + maps
    return BlockSizes(
        rows=rows, words=words, tiles=tiles, log=log, a=fixed, source=first_source,
        output=first_source + source(words, tiles),
    )


def _fixed(config):
    """Return the vectors of a list and its log; what follows in a program memory begins a beat."""
    depth = config.array.depth
    vectors = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth) + -(-LOG_BYTES // depth)
    return vectors + (-vectors % config.read_vectors if config.program_words else 0)


def _even(total, most):
    """Return the size of blocks of at most ``most``, as even as possible."""
    return -(-total // -(-total // most))
