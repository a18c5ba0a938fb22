"""Descriptors of the DMA engine, to the byte; ``docs/dma.md`` describes them in full."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from weft.commands import Job, JobFlag, Load, result
from weft.config import Config

__all__ = [
    "DESCRIPTOR_BYTES", "EDGE", "DescriptorWord", "ElementOrder", "Fetch", "Store", "write_unit",
]

DESCRIPTOR_BYTES = 64
EDGE = 128  # M = N = K of the smallest product that the engine is sized to feed at full rate
_TRANSFER = struct.Struct("<IIIII12x")  # words 8 to 12, then three words of zeros


class ElementOrder(IntEnum):
    """Order of an operand's values in memory. A line is a row of A or a column of B."""

    K_MAJOR = 0  # the values of a line are contiguous: A as [M, K], B as [N, K]
    K_MINOR = 1  # the values of one k are contiguous: A as [K, M], B as [K, N]
    PACKED = 2  # the payload of the load, as on the command stream


class DescriptorWord(IntEnum):
    """Index of each 32-bit word of a descriptor. Words 0 to 7 hold the header."""

    ADDRESS = 8
    STRIDE = 9
    LINES = 10
    K = 11
    ORDER = 12


def write_unit(config: Config, flags: JobFlag) -> int:
    """Size of a write unit in bytes: the results that the engine writes in one cycle.

    Address and stride of the results must be multiples of it. A unit is a chunk of ``lanes``
    results, at most a beat. A slow core has smaller units: the product of `EDGE` x `EDGE` x
    `EDGE` yields ``4 * peak / EDGE`` bytes per cycle, and twice that rate is enough.
    """
    size = result(config, flags).bytes
    most = max(size, -(-2 * 4 * config.peak // EDGE))
    return min(config.lanes * size, config.bytes_in, 1 << (most - 1).bit_length())


@dataclass(frozen=True)
class Fetch:
    """Descriptor of a load: the engine fetches the operand from memory.

    The operand has ``lines`` lines of ``k`` values each. The engine fills the rest of the panels
    with zeros. ``stride`` is the distance in bytes between the starts of two lines, or of two
    values of k with `ElementOrder.K_MINOR`; it may be negative. `ElementOrder.PACKED` uses only
    ``address``.
    """

    load: Load
    address: int
    stride: int = 0
    lines: int = 0
    k: int = 0
    order: ElementOrder = ElementOrder.K_MAJOR

    def pack(self) -> bytes:
        """The 64 bytes; struct.error where a field does not fit its width."""
        return self.load.pack() + _TRANSFER.pack(
            self.address, self.stride & 0xFFFFFFFF, self.lines, self.k, self.order
        )


@dataclass(frozen=True)
class Store:
    """Descriptor of a job: the engine writes its results to memory.

    ``address`` is the place of C[0, 0]. ``stride`` is the distance in bytes between the starts of
    two rows of C; it may be negative.
    """

    job: Job
    address: int
    stride: int

    def pack(self) -> bytes:
        """The 64 bytes; struct.error where a field does not fit its width."""
        return self.job.pack() + _TRANSFER.pack(self.address, self.stride & 0xFFFFFFFF, 0, 0, 0)
