"""Headers, flags and constants of the command stream; ``docs/interfaces.md`` describes it."""

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.config import Config

__all__ = [
    "HEADER_BYTES", "TABLE_ENTRIES", "VERSION", "Job", "JobFlag", "Load", "LoadFlag", "Number",
    "Opcode", "Region", "Status", "epilogue_flags", "result", "supported_flags",
]


@dataclass(frozen=True)
class Number:
    """A number format: ``name`` as in numpy, and width in ``bits``."""

    name: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8


VERSION = 2
HEADER_BYTES = 32

TABLE_ENTRIES = 256


class Opcode(IntEnum):
    """First byte of a header."""

    JOB = 1
    LOAD = 2


class Region(IntEnum):
    """The memory that a load writes; the value is the operand number in its header."""

    A = 0
    B = 1
    PARAMETERS = 2
    TABLE = 3
    C = 4


class JobFlag(IntFlag):
    """Options of a job. Bits without a name must be 0."""

    FEED_A = 1  # A is loaded after this header, by loads with the flag FEED
    FEED_B = 2  # B is loaded after this header, by loads with the flag FEED
    ACCUMULATE = 4  # the sums continue the sums that the previous job kept
    KEEP = 8  # the sums stay in the array; no result is sent
    REQUANTIZE = 16  # results are int8, requantized with the parameters of B's panels
    TABLE = 32  # requantized results go through the activation table
    PRELOAD = 64  # the sums start from C
    BROADCAST = 128  # C has one row, which all rows of sums start from
    CLAMP = 256  # results are clamped to the limits in the parameters of B's panels
    ROUND = 512  # results are rounded to bfloat16


class LoadFlag(IntFlag):
    """Options of a load."""

    FEED = 1  # the panels belong to the latest job, which waits for them
    CONTINUE = 2  # each panel continues the previous one: same rows or columns, next k


class Status(IntFlag):
    """Status of a job: in the last word of its results, and in LAST_JOB of an IP core with DMA."""

    ABORTED = 1
    REJECTED = 2
    READ_ERROR = 4  # a bus error while an operand was read
    WRITE_ERROR = 8  # a bus error while results were written


def epilogue_flags(config: "Config") -> tuple[JobFlag, ...]:
    """The flags that the epilogue of a core supports; the first one selects narrow results."""
    return config.data_type.epilogue_flags(config)


def supported_flags(config: "Config") -> JobFlag:
    """All job flags that a core supports; it rejects a job with any other flag."""
    flags = JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.ACCUMULATE | JobFlag.KEEP
    for flag in epilogue_flags(config):
        flags |= flag
    return flags | JobFlag.PRELOAD | JobFlag.BROADCAST if config.c_words else flags


def result(config: "Config", flags: JobFlag) -> Number:
    """The number format of the results of a job with ``flags``: sums or narrow results."""
    narrow = any(flag in flags for flag in epilogue_flags(config)[:1])
    return config.data_type.narrow if narrow else config.data_type.acc


@dataclass(frozen=True)
class Job:
    """Header of a job: ``C[m, n] = A[m, k] x B[k, n]``.

    The fields ``a_`` and ``b_`` address the operands in pages of their buffers. Panel p starts at
    ``a_page + p * a_pitch``. The operand spans ``a_pages`` pages: a later load into them waits
    until the job has ended. With `PRELOAD` the fields ``c_`` address C in the same way, but in
    words; without it they are 0. `ACCUMULATE` and `KEEP` are for jobs of one pass: one row of
    tiles, at most as many as a PE has sums.
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
    c_page: int = 0
    c_pitch: int = 0
    c_pages: int = 0
    tag: int = 0
    flags: JobFlag = JobFlag(0)

    FORMAT = struct.Struct("<BBHHHIHHHHHHHHHH")
    opcode = Opcode.JOB

    def pack(self) -> bytes:
        """The 32 bytes of the header; struct.error where a field does not fit its width."""
        return self.FORMAT.pack(
            self.opcode, VERSION, self.tag, self.flags, self.m, self.k, self.n,
            self.a_page, self.a_pitch, self.a_pages, self.b_page, self.b_pitch, self.b_pages,
            self.c_page, self.c_pitch, self.c_pages,
        )

    def tagged(self, tag: int) -> "Job":
        """The same job with another tag."""
        # dataclasses.replace takes ten times as long, and a plan is tagged for each product.
        job = object.__new__(Job)
        job.__dict__.update(self.__dict__, tag=tag)
        return job

    @classmethod
    def unpack(cls, data: bytes) -> "Job":
        _, _, tag, flags, m, k, n, *addresses = cls.FORMAT.unpack(data)
        return cls(m, n, k, *addresses, tag=tag, flags=JobFlag(flags))


@dataclass(frozen=True)
class Load:
    """Header of a load: ``panels`` panels of ``words`` words each, from ``page`` on.

    ``operand`` is the `Region` to write, and ``pitch`` the pages from panel to panel. The panels
    follow the header on the stream, in the layout of `weft.geometry.Operand`.
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
        """Pages that the load may write; it waits for jobs that use any of them."""
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
