"""Places of blocks: two that live together never overlap."""

import numpy as np
import pytest

from weft.models.network_core.memory import Block, place


def check(blocks):
    """Return the end of the blocks; they do not overlap."""
    places, top = place(blocks)
    for n, (block, start) in enumerate(zip(blocks, places, strict=True)):
        assert 0 <= start and start + block.size <= top
        for other, begin in zip(blocks[:n], places[:n], strict=True):
            together = block.first <= other.last and other.first <= block.last
            overlap = start < begin + other.size and begin < start + block.size
            assert not (together and overlap)
    return top


def test_a_chain_needs_two_neighbours():
    assert check([Block(10, 0, 1), Block(20, 1, 2), Block(5, 2, 3), Block(12, 3, 4)]) == 30


def test_no_blocks():
    assert place([]) == ([], 0)


@pytest.mark.parametrize("seed", range(20))
def test_random_blocks(seed):
    rng, blocks = np.random.default_rng(seed), []
    for _ in range(int(rng.integers(1, 15))):
        first = int(rng.integers(0, 10))
        blocks.append(Block(int(rng.integers(1, 50)), first, first + int(rng.integers(0, 4))))
    top = check(blocks)
    together = max(
        sum(block.size for block in blocks if block.first <= layer <= block.last)
        for layer in range(14)
    )
    assert together <= top <= 1.3 * together
