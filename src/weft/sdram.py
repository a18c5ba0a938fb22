"""SDR SDRAM chips: geometry, timing in nanoseconds, and timing in cycles of a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["SDRAM_CHIPS", "SdramChip", "SdramPhase", "SdramTiming"]

# Refreshes that a controller postpones at most, to close the rows once for all of them. More of
# them save nothing that matters, and take longer at once.
_POSTPONED = 8
# Before the mode register is set: the most refreshes that a data sheet asks for.
_FIRST_REFRESHES = 8
_CLOSE = 32  # cycles from a refresh that must be made to its command, and back to data, at most
_MRD = 2  # cycles from the mode register to the next command
_SLACK = 1e-9  # of a quotient that is a whole number but for rounding


@dataclass(frozen=True, kw_only=True)
class SdramTiming:
    """The rules of a chip in cycles of one clock; `SdramChip.timing` computes them.

    Attributes
    ----------
    cas : int
        CAS latency, 2 or 3: from READ to the first word.
    rcd, rp, ras, rc, rrd, rfc : int
        From ACTIVATE to READ or WRITE; from PRECHARGE to ACTIVATE or REFRESH; from ACTIVATE to
        PRECHARGE, to the next ACTIVATE of the bank, and of another one; from REFRESH to any
        command.
    ras_max : int
        Longest time from ACTIVATE to PRECHARGE.
    wr : int
        From the last word of a WRITE to PRECHARGE.
    mrd : int
        From LOAD MODE REGISTER to any command.
    refresh : int
        Interval at which a refresh becomes due.
    postponed : int
        Refreshes that may be due before one must be made.
    power_up : int
        Intervals of ``refresh`` from the reset to the first command. As many refreshes follow.

    Raises
    ------
    TypeError
        If a value is not an int.
    ValueError
        If a value is out of range, or the refreshes leave no time for data.
    """

    cas: int
    rcd: int
    rp: int
    ras: int
    ras_max: int
    rc: int
    rrd: int
    rfc: int
    wr: int
    mrd: int
    refresh: int
    postponed: int
    power_up: int

    def __post_init__(self):
        for name, value in vars(self).items():
            if type(value) is not int:
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.cas not in (2, 3):
            raise ValueError(f"cas must be 2 or 3, not {self.cas}")
        if self.power_up < _FIRST_REFRESHES:
            raise ValueError(f"power_up must be at least {_FIRST_REFRESHES}, not {self.power_up}")
        if self.rrd > self.rcd + 1:
            raise ValueError(f"rrd must be at most rcd + 1 = {self.rcd + 1}, not {self.rrd}")
        if self.refresh < (least := self.postponed * self.rfc + _CLOSE):
            raise ValueError(
                f"refresh must be at least {least} cycles, for {self.postponed} refreshes of"
                f" {self.rfc} and {_CLOSE} to close the rows, not {self.refresh}"
            )
        if self.ras_max < (most := (self.postponed + 2) * self.refresh):
            raise ValueError(
                f"ras_max must be at least {most}, {self.postponed + 2} intervals of refresh, not"
                f" {self.ras_max}"
            )

    def read_latency(self, words: int) -> int:
        """Cycles from the address of a read to its beat of ``words``, of an idle controller.

        In an open row: 4 from the address to the command of the first access, 2 to the pins and
        from them, 2 to the beat; the CAS latency, and the words.
        """
        return 8 + self.cas + words

    @property
    def gap(self) -> int:
        """Cycles without data that a batch of ``postponed`` refreshes takes from a stream.

        All rows are closed, refreshed, and that of the stream is opened again.
        """
        return self.rp + self.postponed * self.rfc + max(self.rcd, 2)

    @property
    def efficiency(self) -> float:
        """The part of all cycles in which a linear stream transfers words.

        ``1 - gap / (postponed * refresh)``: rows that follow open behind the words before.
        """
        return 1 - self.gap / (self.postponed * self.refresh)


@dataclass(frozen=True)
class SdramPhase:
    """How late the clock of a chip is, in steps of a PLL.

    The host of a board reads it behind the program memory, and moves it there:
    `weft.hw.sdram.phase.PhaseRegister`.

    Attributes
    ----------
    phase : int
        Steps: 0 to ``steps - 1``.
    steps : int
        Steps of a period: at most ``2**BITS``.
    """

    phase: int
    steps: int

    BITS: ClassVar[int] = 10
    _MARK: ClassVar[int] = 0x5D7  # in the highest bits: a word of a memory seldom has it

    @staticmethod
    def place(program_bytes: int) -> int:
        """The address bit of the register: no address in the program memory has it."""
        return (program_bytes - 1).bit_length()

    @property
    def word(self) -> int:
        """The 32 bits that the host reads: the phase in the lowest bits, ``steps - 1``, a mark."""
        return (self._MARK << self.BITS | self.steps - 1) << self.BITS | self.phase

    @classmethod
    def of_word(cls, word: int) -> SdramPhase | None:
        """The phase of a word; None if the word is of a memory."""
        mask = (1 << cls.BITS) - 1
        found = cls(word & mask, (word >> cls.BITS & mask) + 1)
        return found if found.word == word and found.phase < found.steps else None

    @property
    def degrees(self) -> float:
        """Degrees of a period."""
        return 360 * self.phase / self.steps


@dataclass(frozen=True, kw_only=True)
class SdramChip:
    """Geometry and timing of a chip; times in nanoseconds.

    Attributes
    ----------
    name : str
    banks, rows, columns : int
        Powers of two: rows of a bank, words of a row.
    width : int
        Bits of a word: 8, 16 or 32.
    masks : bool
        DQM is wired. Otherwise it is always low, so a WRITE changes whole words, and the controller
        writes each word by a WRITE of its own.
    period_2, period_3 : float
        Shortest clock period with CAS latency 2 and 3.
    rcd, rp, ras, rc, rrd, rfc, wr : float
        As in `SdramTiming`.
    ras_max : float
        As in `SdramTiming`.
    power_up : float
        From a stable clock to the first command.
    retention : float
        Time in which each row must be refreshed.
    refreshes : int
        Commands that refresh all rows once.

    Raises
    ------
    ValueError
        If a size is not a power of two in its range.
    """

    name: str
    banks: int = 4
    rows: int
    columns: int
    width: int
    masks: bool = True
    period_2: float = 10.0
    period_3: float
    rcd: float
    rp: float
    ras: float
    rc: float
    rrd: float
    rfc: float
    wr: float
    ras_max: float = 100_000.0
    power_up: float = 200_000.0
    retention: float = 64e6
    refreshes: int

    def __post_init__(self):
        limits = {"banks": (2, 4), "rows": (2, 8192), "columns": (16, 1024), "width": (8, 32)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not (low <= value <= high and value & (value - 1) == 0):
                raise ValueError(f"{name} must be a power of two in {low}..{high}, not {value}")

    @property
    def word_bytes(self) -> int:
        return self.width // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of one bank."""
        return self.columns * self.word_bytes

    @property
    def size(self) -> int:
        """Bytes of the chip."""
        return self.banks * self.rows * self.row_bytes

    def timing(self, mhz: float) -> SdramTiming:
        """The rules in cycles of a clock, rounded up; intervals of refresh are rounded down.

        Rows stay open from one batch of refreshes to the next one, so ``ras_max`` limits
        ``postponed``. A refresh comes at most ``postponed + 1`` intervals late: so many intervals
        and one for each of ``refreshes`` fit into the retention time.

        Raises ValueError if the chip is too slow for the clock, or the clock too slow for the chip.
        """
        if not mhz > 0:
            raise ValueError(f"mhz must be more than 0, not {mhz:g}")
        period = 1000 / mhz
        if period < self.period_3 * (1 - _SLACK):
            raise ValueError(
                f"mhz must be at most {1000 / self.period_3:.0f} for {self.name}, not {mhz:g}"
            )

        def cycles(time):
            return max(1, math.ceil(time / period - _SLACK))

        postponed = min(_POSTPONED, int(self.ras_max * self.refreshes / self.retention) - 2)
        refresh = int(self.retention / (self.refreshes + postponed + 1) / period)
        return SdramTiming(
            cas=2 if period >= self.period_2 * (1 - _SLACK) else 3,
            rcd=cycles(self.rcd), rp=cycles(self.rp), ras=cycles(self.ras), rc=cycles(self.rc),
            rrd=cycles(self.rrd), rfc=cycles(self.rfc), wr=cycles(self.wr), mrd=_MRD,
            ras_max=int(self.ras_max / period), refresh=refresh, postponed=postponed,
            power_up=max(_FIRST_REFRESHES, math.ceil(self.power_up / period / max(1, refresh))),
        )

    def rate(self, mhz: float) -> float:
        """MB/s of a linear stream of reads: `SdramTiming.efficiency` of a word a cycle."""
        return mhz * self.word_bytes * self.timing(mhz).efficiency


# The chips of boards. Makers' revisions differ by some nanoseconds: these are the slower values.
_OF_32_MB = {"rows": 8192, "columns": 512, "width": 16, "refreshes": 8192}
_CHIPS = (
    SdramChip(
        name="IS42S16160G-7", period_3=7.0, rcd=20, rp=20, ras=45, rc=67.5, rrd=15, rfc=70, wr=20,
        **_OF_32_MB,
    ),
    SdramChip(
        name="W9825G6KH-6", period_3=6.0, rcd=18, rp=18, ras=42, rc=60, rrd=12, rfc=60, wr=15,
        **_OF_32_MB,
    ),
    SdramChip(
        name="MT48LC16M16A2-75", period_3=7.5, rcd=20, rp=20, ras=44, rc=66, rrd=15, rfc=66, wr=15,
        **_OF_32_MB,
    ),
    SdramChip(
        name="AS4C32M16SB-7", period_3=7.0, rcd=21, rp=21, ras=42, rc=63, rrd=14, rfc=63, wr=14,
        **_OF_32_MB | {"columns": 1024},
    ),
    SdramChip(
        name="EM638325-7", rows=2048, columns=256, width=32, refreshes=4096, period_3=7.0,
        rcd=20, rp=20, ras=45, rc=65, rrd=14, rfc=70, wr=15,
    ),
)
SDRAM_CHIPS = {chip.name: chip for chip in _CHIPS}
