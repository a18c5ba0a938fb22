"""The layout of operands in the buffers and on the stream: words, segments, pages and panels."""

import functools
from dataclasses import dataclass

from weft.commands import TABLE_ENTRIES, Job, JobFlag, Region, supported_flags
from weft.config import PAGE_WORDS, Config

__all__ = ["JobRules", "Operand", "memories", "operands"]


@dataclass(frozen=True)
class Operand:
    """The geometry of one operand's buffer and of its panels.

    A *word* has the values that enter one edge of the array in a cycle: ``depth`` values of k for
    each of ``edge`` rows of A (or columns of B). Value ``e * depth + d`` of word ``w`` is value
    ``k = w * depth + d`` of row ``e``. A panel has ``ceil(K / depth)`` words.

    On the stream, a word larger than a stream word occupies `segments` stream words. Of smaller
    words, `group` share one stream word; word ``w`` of the group starts at byte
    ``w * word_bytes``. A panel starts on a stream word. Padding is zero.

    Parameters
    ----------
    edge : int
        Rows of A, or columns of B, in a panel.
    depth : int
        Values of k in a word.
    words : int
        Depth of the buffer in words.
    stream : int
        Bytes of a stream word.
    page : int
        Words of a page.
    size : int
        Bytes of a value.
    """

    edge: int
    depth: int
    words: int
    stream: int
    page: int = PAGE_WORDS
    size: int = 1

    @functools.cached_property
    def word_bytes(self) -> int:
        """Bytes of a word."""
        return self.edge * self.depth * self.size

    @functools.cached_property
    def pages(self) -> int:
        """Pages of the buffer."""
        return self.words // self.page

    @functools.cached_property
    def segments(self) -> int:
        """Stream words that a word occupies."""
        return -(-self.word_bytes // self.stream)

    @functools.cached_property
    def group(self) -> int:
        """Words in a stream word, a power of two, at most a page; 1 if `segments` is over 1."""
        fits = self.stream // self.word_bytes
        return min(self.page, PAGE_WORDS, 1 << (fits.bit_length() - 1)) if fits else 1

    def panels(self, size: int) -> int:
        """Panels of an operand of ``size`` rows of A, or columns of B."""
        return -(-size // self.edge)

    def panel_words(self, k: int) -> int:
        """Words of a panel."""
        return -(-k // self.depth)

    def panel_pages(self, k: int) -> int:
        """Pages of a panel; the last one may be partly used."""
        return -(-self.panel_words(k) // self.page)

    def panel_stream_words(self, k: int) -> int:
        """Stream words of a panel."""
        return -(-self.panel_words(k) // self.group) * self.segments


def operands(config: Config) -> tuple[Operand, Operand]:
    """The geometry of A and of B."""
    c, kind = config, config.data_type
    return (
        Operand(c.rows, c.depth, c.a_words, c.bytes_in, size=kind.a.bytes),
        Operand(c.cols, c.depth, c.b_words, c.bytes_in, size=kind.b.bytes),
    )


def memories(config: Config) -> dict[Region, Operand]:
    """The geometry of every memory that loads write, by operand number.

    A panel of parameters has the page number of the panel of B that it belongs to, and a word of
    ``lanes`` entries for each chunk of that panel's columns. The activation table is one panel of
    256 words of one byte. A panel of C has the columns of a panel of B and a word for each row, or
    one word for all rows; C is addressed in words.
    """
    a, b = operands(config)
    geometries = {Region.A: a, Region.B: b}
    parameter = config.data_type.parameter
    if parameter and (config.requantize != "none" or config.activation == "clamp"):
        chunks = -(-config.cols // config.lanes)
        page = 1 << (chunks - 1).bit_length()
        geometries[Region.PARAMETERS] = Operand(
            config.lanes, parameter.size, b.pages * page, config.bytes_in, page
        )
    if config.requantize != "none" and config.activation == "table":
        geometries[Region.TABLE] = Operand(1, 1, TABLE_ENTRIES, config.bytes_in, TABLE_ENTRIES)
    if config.c_words:
        size = config.data_type.acc.bytes
        geometries[Region.C] = Operand(config.cols, 1, config.c_words, config.bytes_in, 1, size)
    return geometries


class JobRules:
    """Decides which jobs a core of ``config`` rejects, by ``docs/interfaces.md``."""

    def __init__(self, config: Config):
        a, b = operands(config)
        self._limits = (a.pages * a.edge, b.pages * b.edge, min(a.words, b.words) * a.depth)
        self._pass = (a.edge, config.cell.slots * b.edge)  # rows and columns of a pass
        self._flags = int(supported_flags(config))

    def rejects(self, job: Job) -> bool:
        """Whether the core rejects the job.

        A size is 0 or exceeds the buffers; a flag is not supported; a job that continues or keeps
        sums exceeds a pass; or the sums would start from C and from kept sums.
        """
        sizes = zip((job.m, job.n, job.k), self._limits, strict=True)
        hands_on = bool(job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP))
        return (
            any(not 0 < size <= limit for size, limit in sizes)
            or bool(int(job.flags) & ~self._flags)
            or hands_on and (job.m > self._pass[0] or job.n > self._pass[1])
            or JobFlag.ACCUMULATE in job.flags and JobFlag.PRELOAD in job.flags
        )
