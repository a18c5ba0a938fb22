"""Which loads of a list read the memory on the chip, and which ones stream from another memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.network_core.cycles import ProgramTiming
from weft.network_core.cycles.memory import PERIOD

__all__ = ["CHIP_PACE", "LoadPace", "TimedJob", "TimedLoad", "choose_kept", "list_cycles"]


@dataclass(frozen=True)
class LoadPace:
    """About how long loads take: ``factor`` cycles a read, and ``latency`` beside them."""

    factor: float
    latency: int

    def cycles(self, reads: float) -> int:
        """Return the cycles of a load."""
        return int(self.factor * reads) + self.latency

    @classmethod
    def of_program(cls, timing: ProgramTiming) -> "LoadPace":
        """Return the pace of a program memory, whose beats are the reads."""
        return cls(timing.period / PERIOD, _PIPELINE + timing.latency)


_PIPELINE = 20  # cycles of a load without the memory, about
CHIP_PACE = LoadPace(1.6, 40)  # stores of the job that runs delay reads


class TimedLoad(NamedTuple):
    """A load: the number of its data, their vectors, and the jobs that must have ended before.

    ``slow`` and ``fast`` are its cycles if the data stream and if they are on the chip. ``data`` is
    None for a load that never streams.
    """

    data: int | None
    vectors: int
    waits: int
    slow: int
    fast: int


class TimedJob(NamedTuple):
    """A job: its cycles, and the loads before it."""

    cycles: int
    loads: Sequence[TimedLoad]


def choose_kept(lists: Sequence[Sequence[TimedJob]], room: int) -> set[int]:
    """Return the data that lie on the chip, in at most ``room`` vectors.

    The loads of a list follow each other while jobs compute. Data after data are kept: those that
    save the most cycles for each vector, as long as some do. Then data that save nothing any more,
    because of others, are exchanged. What loads under other jobs in time streams.
    """
    choice = _Choice(lists, room)
    choice.fill()
    while choice.exchange():
        pass
    return choice.kept


class _Choice:
    """Data on the chip, and the cycles of all lists with them."""

    def __init__(self, lists, room):
        self._lists, self._room = lists, room
        self._sizes = {
            load.data: load.vectors for jobs in lists for job in jobs for load in job.loads
            if load.data is not None
        }
        self.kept: set[int] = set()
        self._cycles, self._worth = self._follow(self.kept)

    def _follow(self, kept):
        """Return the cycles with these data, and what the others save at most."""
        worth: dict[int, int] = defaultdict(int)
        return sum(_follow(jobs, kept, worth) for jobs in self._lists), worth

    def fill(self) -> None:
        """Keep more data while that saves cycles.

        A saving is calculated again only if it may be the largest one: it was larger before, or
        the waits of jobs allow it.
        """
        savings = dict(self._worth)
        while savings:
            data = max(savings, key=lambda each: (savings[each] / self._sizes[each], -each))
            bound = savings.pop(data)
            if self._sizes[data] > self._room:
                continue
            cycles, worth = self._follow(self.kept | {data})
            saved = self._cycles - cycles
            others = (saving / self._sizes[each] for each, saving in savings.items())
            if saved < bound and saved / self._sizes[data] < max(others, default=0):
                if saved > 0:
                    savings[data] = saved
                continue
            if saved > 0:
                self.kept.add(data)
                self._room -= self._sizes[data]
                self._cycles, self._worth = cycles, worth

    def exchange(self) -> bool:
        """Drop what saves nothing, and fill again; whether that saves cycles."""
        before = self.kept.copy(), self._room, self._cycles, self._worth
        for data in sorted(self.kept, key=lambda each: (-self._sizes[each], each)):
            cycles, worth = self._follow(self.kept - {data})
            if cycles <= self._cycles:
                self.kept.remove(data)
                self._room += self._sizes[data]
                self._cycles, self._worth = cycles, worth
        self.fill()
        if self._cycles < before[2]:
            return True
        self.kept, self._room, self._cycles, self._worth = before
        return False


def list_cycles(jobs: Sequence[TimedJob], kept: set[int]) -> int:
    """Return the approximate cycles of a list with these data on the chip."""
    return _follow(jobs, kept, defaultdict(int))


def _follow(jobs, kept, worth):
    """Return the cycles of a list; add what data are worth that are not ``kept``."""
    ends, loaded = [0], 0
    late: list[TimedLoad] = []  # since the last load that waited for a job
    for job in jobs:
        for load in job.loads:
            streams = load.data is not None and load.data not in kept
            if ends[load.waits] > loaded:
                loaded, late = ends[load.waits], []
            loaded += load.slow if streams else load.fast
            if streams and load.slow > load.fast:
                late.append(load)
        wait = max(0, loaded - ends[-1])
        if wait:
            for load in late:
                worth[load.data] += min(wait, load.slow - load.fast)
        ends.append(ends[-1] + wait + job.cycles)
    return ends[-1]
