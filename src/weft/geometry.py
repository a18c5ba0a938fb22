"""How operands lie in the buffers and on the stream: words, lines, segments, pages."""

from dataclasses import dataclass

from weft.commands import PARAMETER, TABLE_ENTRIES, Region
from weft.config import PAGE_WORDS, Config

__all__ = ["Operand", "memories", "operands"]


@dataclass(frozen=True)
class Operand:
    """The geometry of one operand's buffer and of its panels.

    A *word* is what the array takes in one cycle: ``edge * depth`` values of ``size`` bytes,
    ``depth`` values of k for each of ``edge`` rows of A (or columns of B); value ``e * depth + d``
    of word ``w`` is value ``k = w * depth + d`` of row ``e``. A panel is ``ceil(K / depth)`` words.

    On the stream, a word of more than ``stream`` bytes takes `segments` stream words, the last one
    padded; of a smaller word, `group` (a power of two, at most a page) share one stream word, each
    at a multiple of `word_bytes` from its start. A panel starts on a stream word.
    Padding is zero.
    """

    edge: int
    depth: int
    words: int
    stream: int
    page: int = PAGE_WORDS
    size: int = 1

    @property
    def word_bytes(self) -> int:
        return self.edge * self.depth * self.size

    @property
    def pages(self) -> int:
        return self.words // self.page

    @property
    def segments(self) -> int:
        """Stream words a word takes."""
        return -(-self.word_bytes // self.stream)

    @property
    def group(self) -> int:
        """Words that one stream word holds: 1 where `segments` is over 1."""
        fits = self.stream // self.word_bytes
        return min(self.page, PAGE_WORDS, 1 << (fits.bit_length() - 1)) if fits else 1

    def panels(self, size: int) -> int:
        """Panels of an operand of ``size`` rows of A, or columns of B."""
        return -(-size // self.edge)

    def panel_words(self, k: int) -> int:
        return -(-k // self.depth)

    def panel_pages(self, k: int) -> int:
        return -(-self.panel_words(k) // self.page)

    def panel_stream_words(self, k: int) -> int:
        """Stream words that carry one panel."""
        return -(-self.panel_words(k) // self.group) * self.segments


def operands(config: Config) -> tuple[Operand, Operand]:
    """The geometry of A and of B."""
    c, kind = config, config.format
    return (
        Operand(c.rows, c.depth, c.a_words, c.bytes_in, size=kind.a.bytes),
        Operand(c.cols, c.depth, c.b_words, c.bytes_in, size=kind.b.bytes),
    )


def memories(config: Config) -> dict[Region, Operand]:
    """The geometry of all that loads fill, by their operand numbers.

    A panel of parameters belongs to the panel of B whose page it has: a word of ``lanes`` entries
    for each chunk of its columns. The table is one panel of 256 words of a byte. A panel of C has
    the columns of a panel of B: a word for each row, or for all; it is addressed in words.
    """
    a, b = operands(config)
    found = {Region.A: a, Region.B: b}
    if config.requantize != "none" or config.activation == "clamp":
        chunks = -(-config.cols // config.lanes)
        page = 1 << (chunks - 1).bit_length()
        size = PARAMETER[config.dtype].size
        found[Region.PARAMETERS] = Operand(
            config.lanes, size, b.pages * page, config.bytes_in, page
        )
    if config.requantize != "none" and config.activation == "table":
        found[Region.TABLE] = Operand(1, 1, TABLE_ENTRIES, config.bytes_in, TABLE_ENTRIES)
    if config.c_words:
        size = config.format.acc.bytes
        found[Region.C] = Operand(config.cols, 1, config.c_words, config.bytes_in, 1, size)
    return found
