"""Blocks of products fit the memory and the buffers, and are as large as that allows."""

import numpy as np
import pytest
from network_cores import BATCH1, LARGE, PROGRAM, TINY, network_core_config
from rejects import rejects

from weft.host.list_plan import BlockSizes, ProductSpace, block_sizes, map_pitch, whole_space

# The entry of a log does not end with a beat of its program memory.
BEATS = network_core_config(2, 4, 4, 2, words=512, read_vectors=4, program_words=2048)
CRAMPED = network_core_config(2, 4, 4, 2, words=128, b_words=8, lines=8, read_vectors=2)


@pytest.mark.parametrize("config", [LARGE, BATCH1, TINY, CRAMPED], ids=lambda c: c.array.name)
def test_blocks_fit(config):
    rng = np.random.default_rng(1)
    depth, cols = config.array.depth, config.array.cols
    for _ in range(200):
        m, k, n = (int(2 ** rng.uniform(0, 13)) for _ in range(3))
        size = int(rng.choice([1, 4]))
        found = block_sizes(config, m, k, n, size)
        assert 1 <= found.rows <= m
        assert found.words * found.tiles <= config.b_words
        assert found.tiles * config.row_chunks <= config.lines
        assert found.log * depth >= 4 * 128
        assert found.a * depth >= found.log * depth + 8
        assert found.source >= found.a + found.rows * map_pitch(config, found.words)
        loaded = found.tiles * (found.words * cols + config.row_chunks * config.line_vectors)
        assert found.output >= found.source + loaded
        results = found.rows * -(-min(n, found.tiles * cols) * size // depth)
        assert found.output + results <= config.vectors


@pytest.mark.parametrize("config", [PROGRAM, BEATS], ids=lambda c: c.array.name)
def test_blocks_fit_a_program_memory(config):
    rng, depth = np.random.default_rng(4), config.array.depth
    for _ in range(300):
        m, k, n = (int(2 ** rng.uniform(0, 12)) for _ in range(3))
        space = ProductSpace(7, int(rng.integers(20, 1500)), 8, int(rng.integers(180, 4000)))
        size = int(rng.choice([1, 4]))
        found = block_sizes(config, m, k, n, size, space)
        assert 1 <= found.rows <= m
        assert found.words * found.tiles <= config.b_words
        assert found.tiles * config.row_chunks <= config.lines
        # In the program memory: the list, its log, and what begins with a beat.
        assert found.log * depth == 4 * 128 and found.source * depth >= 4 * 128 + 8
        assert found.source % config.read_vectors == 0
        tile = found.words * config.array.cols + config.row_chunks * config.line_vectors
        assert found.source + found.tiles * tile <= space.program_vectors
        # On the chip: A and the results.
        assert (found.a, found.output) == (0, found.rows * map_pitch(config, found.words))
        results = found.rows * -(-min(n, found.tiles * config.array.cols) * size // depth)
        assert found.output + results <= space.vectors


def test_a_program_memory_that_limits_no_block():
    rng = np.random.default_rng(5)
    for _ in range(200):
        m, k, n = (int(2 ** rng.uniform(0, 12)) for _ in range(3))
        vectors, lists = whole_space(PROGRAM, m, k, n, 4)
        found = block_sizes(PROGRAM, m, k, n, 4, ProductSpace(0, vectors, 0, lists))
        assert found == block_sizes(PROGRAM, m, k, n, 4, ProductSpace(0, 1 << 40, 0, 1 << 40))


def test_a_product_that_fits_is_one_block():
    # 9 banks: 16 vectors of a row are 16 apart, since 16 and 9 have no common factor. 4 descriptors
    # of 16 vectors, 1 of the log, 100 rows of 16; 2 tiles of 16 words of 8 vectors and of a line of
    # 12 vectors (72 bytes are 9, in reads of 4).
    assert block_sizes(LARGE, 100, 128, 16, 4) == BlockSizes(
        rows=100, words=16, tiles=2, log=64, a=65, source=65 + 1600,
        output=65 + 1600 + 2 * (16 * 8 + 12),
    )


@pytest.mark.parametrize("config", [LARGE, BATCH1, TINY, CRAMPED], ids=lambda c: c.array.name)
def test_vectors_that_limit_no_block(config):
    """With so many, blocks are as those of a memory without an end; and they lie in them."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        m, k, n = (int(2 ** rng.uniform(0, 12)) for _ in range(3))
        vectors, none = whole_space(config, m, k, n, 4)
        assert none == 0
        found = block_sizes(config, m, k, n, 4, ProductSpace(0, vectors))
        assert found == block_sizes(config, m, k, n, 4, ProductSpace(0, 1 << 40))
        results = found.rows * -(-min(n, found.tiles * config.array.cols) * 4 // config.array.depth)
        assert found.output + results <= vectors


@pytest.mark.parametrize("vectors, pitch", [(1, 1), (3, 4), (9, 10), (16, 16)])
def test_pitch(vectors, pitch):
    assert map_pitch(LARGE, vectors) == pitch


def test_k_is_divided_only_if_a_tile_does_not_fit():
    assert block_sizes(LARGE, 1000, 512 * 8, 1000, 1).words == 512
    assert block_sizes(LARGE, 1000, 513 * 8, 1000, 1).words == 257


def test_too_small():
    config = network_core_config(2, 4, 4, 2, words=32, b_words=8, lines=8, read_vectors=2)
    rule = "a network core must have a memory and buffers for a product of one tile, not"
    with rejects(ValueError, f"{rule} 384 bytes and 8 lines"):
        block_sizes(config, 1, 1, 1, 1)
    with rejects(ValueError, (
        "a network core must have a memory and buffers for a product of one tile, not 2048 bytes,"
        " 400 bytes of program memory and 64 lines"
    )):
        block_sizes(PROGRAM, 1, 1, 1, 1, ProductSpace(0, 512, 0, 100))
