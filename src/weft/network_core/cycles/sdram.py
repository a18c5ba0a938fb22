"""The rows and refreshes of an SDRAM, in the cycle model of lists."""

from dataclasses import dataclass

from weft.sdram import SdramChip

__all__ = ["SdramRows", "SdramTimes"]

_LONGEST = 8  # words of an access: the burst length of a chip
_ASK = 1  # cycle from an address to the scheduler
_CHECK = 2  # cycles until the scheduler knows whether the row is open, and passes the burst on
_START = 1  # until its first access
_CLOSED = 2  # cycles to begin and to end refreshes, beside the chip's


@dataclass(frozen=True)
class SdramRows:
    """What rows and refreshes of an SDRAM take, in cycles.

    Attributes
    ----------
    beats, banks : int
        Beats of a row, and the banks, which rows that follow each other take in turn.
    words : int
        Words of a beat: the cycles of its transfer.
    rcd, rp, rfc, hold : int
        From opening a row to its first access, from closing to opening, of a refresh, and from
        opening a row to closing another one.
    refresh, postponed : int
        The interval of refreshes, and how many may be due before they are made.
    """

    beats: int
    banks: int
    words: int
    rcd: int
    rp: int
    rfc: int
    hold: int
    refresh: int
    postponed: int

    @classmethod
    def of(cls, chip: SdramChip, mhz: float, beat_bytes: int) -> "SdramRows":
        """Those of a chip at a clock, behind `weft.hw.sdram.controller.SdramController`."""
        timing, words = chip.timing(mhz), beat_bytes // chip.word_bytes
        hold = max(
            min(words, _LONGEST) - 2 + timing.wr, timing.ras - 1, timing.rc - timing.rp - 1
        )
        return cls(
            chip.row_bytes // beat_bytes, chip.banks, words, timing.rcd, timing.rp, timing.rfc,
            hold, timing.refresh, timing.postponed,
        )


class SdramTimes:
    """`weft.hw.sdram.scheduler.Scheduler`, burst by burst: reads alone.

    The first refresh is due an interval after the start of the list: when it is, no list knows.

    Parameters
    ----------
    rows : SdramRows
    """

    def __init__(self, rows: SdramRows):
        self._rows, self._access = rows, min(rows.words, _LONGEST)
        self._open: dict[int, int] = {}  # the row of each open bank
        self._bank: int | None = None  # of the last burst
        self._passed = self._last = self._opened = -rows.refresh  # of it, its last access; a row
        self._made = 0  # refreshes

    def start(self, now: int, beat: int, count: int) -> int:
        """The cycle of the first access of a burst, whose address comes in cycle ``now``.

        The beats follow each other without a gap.
        """
        rows, end = self._rows, self._last + self._access
        taken = max(now + _ASK, self._passed + 1)
        if end <= now:
            taken = max(taken, self._refreshed(max(end, 0), now))
        row = beat // rows.beats
        bank = row % rows.banks
        ready = taken + _CHECK
        if self._open.get(bank) != row:
            if bank in self._open:
                ready = max(ready, self._opened + rows.hold + 1)
                if bank == self._bank:
                    ready = max(ready, end)
                ready += rows.rp
            self._opened, self._open[bank] = ready, row
            ready += max(rows.rcd - 1, 1)
        self._passed = max(ready, self._last + 1)
        first = max(self._passed + _START, end)
        due = first // rows.refresh - self._made
        if due >= rows.postponed:  # between two accesses
            first += rows.rp + due * rows.rfc + max(rows.rcd, 2)
            self._made, self._open = self._made + due, {bank: row}
        self._bank, self._last = bank, first + count * rows.words - self._access
        return first

    def _refreshed(self, idle, now):
        """The cycle in which the refreshes are made that came due until ``now``; 0 if none did.

        No burst was inside from ``idle`` on.
        """
        rows, done = self._rows, 0
        before = _CLOSED + rows.rp
        late = idle // rows.refresh - self._made  # they waited for the burst
        if late > 0:
            done = idle + before + late * rows.rfc
            self._made += late
        if now // rows.refresh > self._made:
            self._made = now // rows.refresh
            done = max(done, self._made * rows.refresh + before + rows.rfc)
        if done:
            self._open.clear()
        return done
