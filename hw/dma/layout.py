"""Layout of panels in the packing memory, and the number of bytes packed per cycle."""

from dataclasses import dataclass

from weft.config import Config
from weft.descriptors import EDGE
from weft.geometry import Operand, operands

__all__ = ["HALF_ROWS", "Layout", "PackedLayout", "layouts", "pack_bytes"]

HALF_ROWS = 256  # rows in one half of the packing memory


def pack_bytes(config: Config) -> int:
    """Size of a pack word: the bytes packed per cycle, a power of two, at most a beat.

    A product with ``M = N = K = E`` needs ``E^2`` values of A, of B and of C in ``E^3 / peak``
    cycles: ``peak / E`` values of each per cycle. Twice that rate leaves room for the operands
    that are packed below the full rate.
    """
    size = config.data_type.a.bytes
    sums = config.data_type.acc.bytes if config.c_words else 0
    most = max(size, -(-2 * (2 * size + sums) * config.peak // EDGE))
    return min(config.bytes_in, 1 << (most - 1).bit_length())


@dataclass(frozen=True)
class Layout:
    """Layout of the panels of A or of B in the packing memory.

    A *row* of the memory holds `span` whole words of a panel, in the form that they have on the
    command stream: `row_words` stream words. `byte_map` lists which byte of a row holds which
    byte of which value. A *slice* of a panel fills one half of the memory: `slice_k` values of k
    for each line.

    ``span`` is the smallest number for which each pack word falls into a single row, both when
    it holds values of one line (K_MAJOR) and when it holds values of one k (K_MINOR).

    Parameters
    ----------
    operand : `weft.geometry.Operand`
    pack_bytes : int
        Bytes of a pack word.
    """

    operand: Operand
    pack_bytes: int

    @property
    def edge(self) -> int:
        """Lines of a panel."""
        return self.operand.edge

    @property
    def size(self) -> int:
        """Bytes of a value."""
        return self.operand.size

    @property
    def span(self) -> int:
        """Panel words per row: a power of two."""
        o = self.operand
        return max(o.group, self.pack_bytes // (o.depth * o.size))

    @property
    def row_words(self) -> int:
        """Stream words per row."""
        return self.span // self.operand.group * self.operand.segments

    @property
    def bytes(self) -> int:
        """Bytes per row."""
        return self.row_words * self.operand.stream

    @property
    def row_k(self) -> int:
        """Values of k per row, for each line."""
        return self.span * self.operand.depth

    @property
    def slice_k(self) -> int:
        """Values of k per half of the memory, for each line."""
        return self.row_k * HALF_ROWS

    @property
    def line_pack_words(self) -> int:
        """Pack words that fill one line of a row."""
        return self.row_k * self.operand.size // self.pack_bytes

    @property
    def k_pack_words(self) -> int:
        """Pack words that hold the values of one k."""
        return -(-self.operand.edge * self.operand.size // self.pack_bytes)

    def byte_map(self):
        """Yield ``(byte of the row, line, k of the row, byte of the value)`` of each used byte."""
        o = self.operand
        for word in range(self.span):
            start = word // o.group * o.segments * o.stream + word % o.group * o.word_bytes
            for line in range(o.edge):
                for d in range(o.depth):
                    for s in range(o.size):
                        byte = start + (line * o.depth + d) * o.size + s
                        yield byte, line, word * o.depth + d, s


@dataclass(frozen=True)
class PackedLayout:
    """Layout of a load in the order PACKED, and of headers: one stream word per row, unchanged.

    It has the properties of a `Layout` with one line, whose values are stream words.

    Parameters
    ----------
    size : int
        Bytes of a stream word.
    pack_bytes : int
        Bytes of a pack word.
    """

    size: int
    pack_bytes: int
    edge = row_k = row_words = 1
    slice_k = HALF_ROWS

    @property
    def line_pack_words(self) -> int:
        """Pack words of a stream word."""
        return self.size // self.pack_bytes

    def byte_map(self):
        """As `Layout.byte_map`."""
        for byte in range(self.size):
            yield byte, 0, 0, byte


def layouts(config: Config) -> tuple[Layout, Layout, PackedLayout]:
    """The layouts of A, of B, and of PACKED loads and headers."""
    size = pack_bytes(config)
    a, b = operands(config)
    return Layout(a, size), Layout(b, size), PackedLayout(config.bytes_in, size)
