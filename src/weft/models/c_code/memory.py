"""Places of activations in one static array; tensors of different times share its memory."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Interval", "places"]

_ALIGNMENT = 8


@dataclass(frozen=True)
class Interval:
    """The memory that a tensor needs.

    Attributes
    ----------
    size : int
        Bytes.
    first, last : int
        Steps that write it first and read it last, both included.
    """

    size: int
    first: int
    last: int


def places(intervals: Mapping[int, Interval]) -> tuple[dict[int, int], int]:
    """Return the offset of each tensor, a multiple of 8, and the bytes of the whole array.

    The largest tensor is placed first, each at the lowest offset that is free while it is needed.
    """
    offsets: dict[int, int] = {}
    order = sorted(intervals, key=lambda number: (-intervals[number].size, number))
    for number in order:
        given = intervals[number]
        taken = sorted(
            (offsets[other], offsets[other] + _padded(intervals[other].size))
            for other in offsets
            if intervals[other].first <= given.last and given.first <= intervals[other].last
        )
        offset = 0
        for start, end in taken:
            if start - offset >= _padded(given.size):
                break
            offset = max(offset, end)
        offsets[number] = offset
    total = max((offset + _padded(intervals[n].size) for n, offset in offsets.items()), default=0)
    return offsets, total


def _padded(size):
    return -(-size // _ALIGNMENT) * _ALIGNMENT
