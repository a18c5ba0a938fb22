"""Descriptors of the DMA engine, to the byte; ``docs/dma.md`` tells the story."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from weft.commands import Job, JobFlag, Load, result
from weft.config import Config

__all__ = [
    "DESCRIPTOR_BYTES", "EDGE", "DescriptorWord", "ElementOrder", "Fetch", "Store", "write_unit",
]

DESCRIPTOR_BYTES = 64
EDGE = 128  # of the product, a cube, that is to lose no time in being moved
_PLACE = struct.Struct("<IIIII12x")


class ElementOrder(IntEnum):
    """How an operand lies in memory."""

    K = 0  # the ks of a line follow each other: A as [M, K], B as [N, K]
    LINES = 1  # the lines of a k follow each other: A as [K, M], B as [K, N]
    RAW = 2  # as it follows the load on the command stream


class DescriptorWord(IntEnum):
    """What the 32-bit words of a descriptor are: the header's own eight, then these."""

    ADDRESS = 8
    STRIDE = 9
    LINES = 10
    K = 11
    ORDER = 12


def write_unit(config: Config, flags: JobFlag) -> int:
    """Bytes of results that are written at once; address and stride are multiples of it.

    A chunk, or what of it goes into a beat, or less where the core is slow: of a product of
    `EDGE` x `EDGE` x `EDGE` the core gives ``4 * peak / EDGE`` bytes a cycle, and twice as many
    leave room.
    """
    size = result(config, flags).bytes
    most = max(size, -(-2 * 4 * config.peak // EDGE))
    return min(config.lanes * size, config.bytes_in, 1 << (most - 1).bit_length())


@dataclass(frozen=True)
class Fetch:
    """A load whose operand is fetched from memory.

    ``stride`` bytes lie between the starts of two lines (rows of A, columns of B), or with
    `Order.LINES` of two ks; it may be negative. ``lines`` lines of ``k`` values are there; what
    the load has beyond them is zeros. With `Order.RAW` only ``address`` counts.
    """

    load: Load
    address: int
    stride: int = 0
    lines: int = 0
    k: int = 0
    order: ElementOrder = ElementOrder.K

    def pack(self) -> bytes:
        """The 64 bytes; struct.error where a field does not fit its width."""
        return self.load.pack() + _PLACE.pack(
            self.address, self.stride & 0xFFFFFFFF, self.lines, self.k, self.order
        )


@dataclass(frozen=True)
class Store:
    """A job whose results go to memory, ``stride`` bytes from row to row; it may be negative."""

    job: Job
    address: int
    stride: int

    def pack(self) -> bytes:
        """The 64 bytes; struct.error where a field does not fit its width."""
        return self.job.pack() + _PLACE.pack(self.address, self.stride & 0xFFFFFFFF, 0, 0, 0)
