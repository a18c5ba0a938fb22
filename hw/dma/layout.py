"""How panels lie in the packing memory, and how many bytes a cycle go into it."""

from dataclasses import dataclass

from weft.config import Config
from weft.descriptors import EDGE
from weft.geometry import Operand, operands

__all__ = ["ROWS", "Layout", "Raw", "granule", "layouts"]

ROWS = 256  # of a half of the packing memory


def granule(config: Config) -> int:
    """Bytes that are packed in a cycle: a power of two, at most a beat.

    A product of edge E takes ``E^2`` values of A, of B and of C in ``E^3 / peak`` cycles, each
    ``peak / E`` a cycle. Twice as many leave room for what is not packed at full rate.
    """
    size = config.format.a.bytes
    sums = config.format.acc.bytes if config.c_words else 0
    most = max(size, -(-2 * (2 * size + sums) * config.peak // EDGE))
    return min(config.bytes_in, 1 << (most - 1).bit_length())


@dataclass(frozen=True)
class Layout:
    """One operand in the packing memory: a row holds ``span`` whole words of a panel.

    Value ``d`` of k of line ``l`` of word ``w`` lies at byte ``position(w, l, d)`` of a row, which
    is that of the stream words that the row becomes. ``span`` is the least that lets a granule of
    one line's values, and one of one k's, go into a single row.
    """

    operand: Operand
    granule: int

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
        """Words of a panel in a row: a power of two."""
        o = self.operand
        return max(o.group, self.granule // (o.depth * o.size))

    @property
    def places(self) -> int:
        """Stream words that a row becomes."""
        return self.span // self.operand.group * self.operand.segments

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        return self.places * self.operand.stream

    @property
    def ks(self) -> int:
        """Values of k in a row, for each line."""
        return self.span * self.operand.depth

    @property
    def chunk(self) -> int:
        """Values of k in a half of the memory."""
        return self.ks * ROWS

    @property
    def line_granules(self) -> int:
        """Granules of a line's values in a row."""
        return self.ks * self.operand.size // self.granule

    @property
    def k_granules(self) -> int:
        """Granules of the values of one k."""
        return -(-self.operand.edge * self.operand.size // self.granule)

    def lanes(self):
        """``(byte of the row, line, k within the row, byte of the value)`` of all that is used."""
        o = self.operand
        for word in range(self.span):
            start = word // o.group * o.segments * o.stream + word % o.group * o.word_bytes
            for line in range(o.edge):
                for d in range(o.depth):
                    for s in range(o.size):
                        byte = start + (line * o.depth + d) * o.size + s
                        yield byte, line, word * o.depth + d, s


@dataclass(frozen=True)
class Raw:
    """What goes as it is: a line of values of a stream word each, a row for each of them."""

    size: int
    granule: int
    edge = ks = places = 1
    chunk = ROWS

    @property
    def line_granules(self) -> int:
        return self.size // self.granule

    def lanes(self):
        for byte in range(self.size):
            yield byte, 0, 0, byte


def layouts(config: Config) -> tuple[Layout, Layout, Raw]:
    """Those of A and B, and of what is neither."""
    share = granule(config)
    a, b = operands(config)
    return Layout(a, share), Layout(b, share), Raw(config.bytes_in, share)
