"""The command stream, to the byte; ``docs/interfaces.md`` tells the story."""

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from weft.config import Config
from weft.formats import Number

__all__ = [
    "HEADER_BYTES",
    "PARAMETER",
    "TABLE_ENTRIES",
    "VERSION",
    "Job",
    "JobFlag",
    "Load",
    "LoadFlag",
    "Opcode",
    "Region",
    "Status",
    "epilogue_flags",
    "result",
    "supported_flags",
]

VERSION = 2
HEADER_BYTES = 32

# What finishes a column, by the dtype of the Config. int8: bias, multiplier (a float32's bits in
# mode onnx), shift, zero point of B, zero point of the result, its least and its greatest value.
# bf16: least and greatest result.
PARAMETER = {"int8": struct.Struct("<iIbbhhh"), "bf16": struct.Struct("<ff")}
TABLE_ENTRIES = 256


class Opcode(IntEnum):
    """First byte of a header."""

    JOB = 1
    LOAD = 2


class Region(IntEnum):
    """What a load fills: its operand number."""

    A = 0
    B = 1
    PARAMETERS = 2
    TABLE = 3
    C = 4


class JobFlag(IntFlag):
    """What a job does beside multiplying. A bit without a name here must be 0."""

    FEED_A = 1  # A is loaded after this header, by loads flagged FEED
    FEED_B = 2  # B likewise
    ACCUMULATE = 4  # the sums start from those kept by the job before
    KEEP = 8  # the sums stay in the array; no result is sent
    REQUANTIZE = 16  # results are int8, by the parameters of B's panels
    TABLE = 32  # ... and go through the activation table
    PRELOAD = 64  # the sums start from C
    BROADCAST = 128  # ... which is one row, that of every row
    CLAMP = 256  # results are held between the limits in the parameters of B's panels
    ROUND = 512  # results are bfloat16


class LoadFlag(IntFlag):
    """How a load is ordered against jobs."""

    FEED = 1  # the panels are the next ones of the latest job
    CONTINUE = 2  # each panel carries on the one loaded before it: same rows or columns, next k


class Status(IntFlag):
    """What the last word of a job's results says; and LAST_JOB of an IP core with DMA."""

    ABORTED = 1
    REJECTED = 2
    READ_ERROR = 4  # of an operand
    WRITE_ERROR = 8  # of the results


def epilogue_flags(config: Config) -> tuple[JobFlag, ...]:
    """The flags that the result path of a core knows; the first one makes results narrow."""
    if config.dtype == "bf16":
        return (JobFlag.ROUND, *([JobFlag.CLAMP] if config.activation == "clamp" else []))
    if config.requantize == "none":
        return ()
    return (JobFlag.REQUANTIZE, *([JobFlag.TABLE] if config.activation == "table" else []))


def supported_flags(config: Config) -> JobFlag:
    """All flags that a core knows; it refuses a job with any other."""
    flags = JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.ACCUMULATE | JobFlag.KEEP
    for flag in epilogue_flags(config):
        flags |= flag
    return flags | JobFlag.PRELOAD | JobFlag.BROADCAST if config.c_words else flags


def result(config: Config, flags: JobFlag) -> Number:
    """What each result of a job with ``flags`` is: a sum, or narrow."""
    narrow = any(flag in flags for flag in epilogue_flags(config)[:1])
    return config.format.narrow if narrow else config.format.acc


@dataclass(frozen=True)
class Job:
    """One job: ``C[m, n] = A[m, k] x B[k, n]``, operands in pages of the buffers.

    ``a_pitch`` pages lie between the starts of two panels; the operand spans ``a_pages`` pages in
    all (what a later load must not touch before the job has ended). The C of a job with `PRELOAD`
    lies likewise, but in words; without it the c_ fields are 0. `ACCUMULATE` and `KEEP` are for
    jobs of one pass: a row of as many tiles as a PE holds sums.
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

    @classmethod
    def unpack(cls, data: bytes) -> "Job":
        _, _, tag, flags, m, k, n, *places = cls.FORMAT.unpack(data)
        return cls(m, n, k, *places, tag=tag, flags=JobFlag(flags))


@dataclass(frozen=True)
class Load:
    """``panels`` panels of ``words`` words each into an operand, from ``page`` on.

    ``operand`` is a `Region`. The panels follow the header on the stream, laid out as
    `weft.geometry.Operand` says.
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
