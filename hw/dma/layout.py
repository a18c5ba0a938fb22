"""How panels lie in the packing memory, and how many bytes a cycle go into it."""

from dataclasses import dataclass

from weft.config import Config
from weft.descriptors import EDGE
from weft.geometry import Operand, operands

__all__ = ["ROWS", "Layout", "granule", "layouts"]

ROWS = 256  # of a half of the packing memory


def granule(config: Config) -> int:
    """Bytes that are packed in a cycle: a power of two, at most a beat.

    A product of edge E moves ``2 * E^2`` values in ``E^3 / peak`` cycles, ``2 * peak / E`` a
    cycle. Twice as many leave room for what is not packed at full rate.
    """
    size = config.format.a.bytes
    most = max(size, -(-2 * 2 * config.peak * size // EDGE))
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


def layouts(config: Config) -> tuple[Layout, Layout]:
    """Those of A and B."""
    a, b = operands(config)
    return Layout(a, granule(config)), Layout(b, granule(config))
