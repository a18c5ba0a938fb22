"""The command stream, to the byte; ``docs/interfaces.md`` tells the story."""

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

__all__ = [
    "HEADER_BYTES", "PARAMETER", "TABLE_ENTRIES", "VERSION",
    "Job", "JobFlag", "Load", "LoadFlag", "Opcode", "Status",
]

VERSION = 1
HEADER_BYTES = 32

# What finishes a column: bias, multiplier (a float32's bits in mode onnx), shift, zero point of B,
# zero point of the result, its least and its greatest value.
PARAMETER = struct.Struct("<iIbbhhh")
TABLE_ENTRIES = 256


class Opcode(IntEnum):
    """First byte of a header."""

    JOB = 1
    LOAD = 2


class JobFlag(IntFlag):
    """What a job does beside multiplying. A bit without a name here must be 0."""

    FEED_A = 1  # A is loaded after this header, by loads flagged FEED
    FEED_B = 2  # B likewise
    ACCUMULATE = 4  # the sums start from those kept by the job before
    KEEP = 8  # the sums stay in the array; no result is sent
    REQUANTIZE = 16  # results are int8, by the parameters of B's panels
    TABLE = 32  # ... and go through the activation table


class LoadFlag(IntFlag):
    """How a load is ordered against jobs."""

    FEED = 1  # the panels are the next ones of the latest job
    CONTINUE = 2  # each panel carries on the one loaded before it: same rows or columns, next k


class Status(IntFlag):
    """What the last word of a job's results says."""

    ABORTED = 1
    REJECTED = 2


@dataclass(frozen=True)
class Job:
    """One job: ``C[m, n] = A[m, k] x B[k, n]``, operands in pages of the buffers.

    ``a_pitch`` pages lie between the starts of two panels; the operand spans ``a_pages`` pages in
    all (what a later load must not touch before the job has ended). `ACCUMULATE` and `KEEP` are
    for jobs of one tile.
    """

    m: int
    n: int
    k: int
    a_page: int
    a_pitch: int
    a_pages: int
    b_page: int
    b_pitch: int
    b_pages: int
    tag: int = 0
    flags: JobFlag = JobFlag(0)

    FORMAT = struct.Struct("<BBHHHIIIHHHHHH")
    opcode = Opcode.JOB

    def pack(self) -> bytes:
        """The 32 bytes of the header; struct.error where a field does not fit its width."""
        return self.FORMAT.pack(
            self.opcode, VERSION, self.tag, self.flags, 0, self.m, self.n, self.k,
            self.a_page, self.a_pitch, self.b_page, self.b_pitch, self.a_pages, self.b_pages,
        )

    @classmethod
    def unpack(cls, data: bytes) -> "Job":
        (_, _, tag, flags, _, m, n, k, a_page, a_pitch, b_page, b_pitch, a_pages, b_pages) = (
            cls.FORMAT.unpack(data)
        )
        return cls(m, n, k, a_page, a_pitch, a_pages, b_page, b_pitch, b_pages, tag, JobFlag(flags))


@dataclass(frozen=True)
class Load:
    """``panels`` panels of ``words`` words each into an operand, from ``page`` on.

    Operand 0 is A, 1 is B, 2 the parameters, 3 the table. The panels follow the header on the
    stream, laid out as `weft.geometry.Operand` says.
    """

    operand: int
    page: int
    pitch: int
    panels: int
    words: int
    flags: LoadFlag = LoadFlag(0)

    FORMAT = struct.Struct("<BBBBHHIII12x")
    opcode = Opcode.LOAD

    @property
    def pages(self) -> int:
        """Pages the load may write: the span later commands are ordered against."""
        return self.pitch * self.panels

    def pack(self) -> bytes:
        """The 32 bytes of the header; struct.error where a field does not fit its width."""
        return self.FORMAT.pack(
            self.opcode, VERSION, self.operand, self.flags, self.page, self.pitch,
            self.panels, self.words, self.pages,
        )

    @classmethod
    def unpack(cls, data: bytes) -> "Load":
        _, _, operand, flags, page, pitch, panels, words, _ = cls.FORMAT.unpack(data)
        return cls(operand, page, pitch, panels, words, LoadFlag(flags))
