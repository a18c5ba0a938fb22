"""The memories of a language core as its host sees them, over a link.

An address has `PLACE_BITS` bits for the place of a unit, and above them the `Memory`.
"""

from enum import IntEnum

from weft import frames
from weft.language_core.config import GROUP_BYTES

__all__ = ["PLACE_BITS", "UNIT_BYTES", "WRITE_BYTES", "WRITE_FIELDS", "Memory", "address"]

PLACE_BITS = 16
WRITE_FIELDS = 4  # bytes of a WRITE before its data: the address
WRITE_BYTES = (frames.MAX_WRITE - frames.WRITE_FIELDS) // GROUP_BYTES * GROUP_BYTES  # at most


class Memory(IntEnum):
    """A memory of a language core."""

    MAIN = 0  # parameter groups: list, weights, keys and values, parameters
    TABLES = 1  # base and slope of an entry, 16 bits each; it cannot be read
    TEXT = 2  # tokens by their positions


UNIT_BYTES = {Memory.MAIN: GROUP_BYTES, Memory.TABLES: 4, Memory.TEXT: 2}


def address(memory: Memory, place: int) -> int:
    """The address of a unit."""
    return memory << PLACE_BITS | place
