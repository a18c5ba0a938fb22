"""Places blocks in a memory; two share vectors only if their lives do not overlap."""

import random
from dataclasses import dataclass

__all__ = ["Block", "place"]

_ORDERS = 300  # tried at most


@dataclass(frozen=True)
class Block:
    """Consecutive vectors that are used from layer ``first`` to layer ``last``.

    Attributes
    ----------
    size : int
        Vectors.
    first, last : int
    """

    size: int
    first: int
    last: int


def place(blocks: list[Block]) -> tuple[list[int], int]:
    """Return the first vector of each block, and the vectors of all of them together.

    Blocks are placed one after the other, each at the lowest place that is free from its first to
    its last layer. The largest block comes first; then up to 300 random orders are tried. The
    search ends early if a result cannot be smaller: the blocks of some layer need all its vectors.
    """
    if not blocks:
        return [], 0
    least = max(
        sum(block.size for block in blocks if block.first <= layer <= block.last)
        for layer in range(max(block.last for block in blocks) + 1)
    )
    order = sorted(range(len(blocks)), key=lambda n: (-blocks[n].size, blocks[n].first))
    best, rng = _placed(order, blocks), random.Random(1)
    for _ in range(_ORDERS):
        if best[1] == least:
            break
        rng.shuffle(order)
        best = min(best, _placed(order, blocks), key=lambda result: result[1])
    return best


def _placed(order, blocks):
    """Return places and end of the blocks in an order."""
    places, top = [0] * len(blocks), 0
    done: list[int] = []
    for number in order:
        block, start = blocks[number], 0
        for other in sorted(done, key=lambda n: places[n]):
            against, end = blocks[other], places[other] + blocks[other].size
            together = block.first <= against.last and against.first <= block.last
            if together and places[other] < start + block.size and start < end:
                start = end
        places[number] = start
        top = max(top, start + block.size)
        done.append(number)
    return places, top
