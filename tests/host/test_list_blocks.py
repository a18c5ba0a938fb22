"""Blocks of products fit the memory and the buffers, and are as large as that allows."""

import numpy as np
import pytest
from network_cores import BATCH1, LARGE, TINY, network_core_config
from rejects import rejects

from weft.host.list_products import BlockSizes, block_sizes, map_pitch, whole_vectors

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
        vectors = whole_vectors(config, m, k, n, 4)
        found = block_sizes(config, m, k, n, 4, vectors)
        assert found == block_sizes(config, m, k, n, 4, 1 << 40)
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
