"""The last stretch of the cycle model: how long results take from their buffer to the stream."""

from collections import deque
from dataclasses import dataclass, replace

from weft.commands import JobFlag, finishes, result
from weft.timing import Delays

__all__ = ["Kind", "Outlet"]


@dataclass(frozen=True)
class Kind:
    """What the results of a job are, on their way out.

    Attributes
    ----------
    finished : bool
        Something is done to them.
    gathered : bool
        Chunks are gathered in words, which leave in the cycle after.
    words : int
        Cycles that a chunk takes to leave.
    bytes : int
        Of a result.
    """

    finished: bool
    gathered: bool
    words: int
    bytes: int

    @classmethod
    def of(cls, delays: Delays, flags: JobFlag) -> "Kind":
        """That of the results of a job with ``flags``."""
        config = delays.config
        through = finishes(config)
        if config.dtype == "int8":
            through = through[:1]  # a table alone does nothing
        number = result(config, flags)
        finished = any(flag in flags for flag in through)
        gathered = number.bytes * config.lanes < config.bytes_out
        return cls(finished, gathered, delays.chunk_words(number), number.bytes)

    @property
    def ending(self) -> "Kind":
        """That of a word that has no results and only ends a job."""
        return replace(self, words=1)


class Outlet:
    """The way of chunks from the result buffer to the result stream, as cycles.

    A chunk is asked for when it is there and has a place at the end of its way, arrives after
    the latency of its kind, and leaves its place in some words once those before it have left.
    """

    def __init__(self, config, delays):
        self.delays = delays
        self.pace = config.scale_cycles
        self.read = -1  # cycle in which the last chunk was asked for,
        self.gone = -1  # and left its place
        self.scaled = -delays.lag - 1  # in which the last one to be finished was asked for
        self.word = -1  # in which the last gathered word left
        self.left = deque([-1] * delays.places, delays.places)  # those in which places got free

    def chunks(self, time, count, kind):
        """Ask for chunks from ``time`` on; the cycle in which the last word is taken."""
        pace = max(kind.words, self.pace if kind.finished else 1)
        steady = end = 0
        while count and steady <= self.delays.places:
            read, gone = self.read, self.gone
            end = self.chunk(time, kind)
            count -= 1
            steady = steady + 1 if (self.read - read, self.gone - gone) == (pace, pace) else 0
        # From here on all go at one pace.
        more = count * pace
        self.read += more
        self.gone += more
        self.scaled += more * kind.finished
        self.word += more * kind.gathered
        self.left = deque((free + more for free in self.left), self.left.maxlen)
        return end + more

    def chunk(self, time, kind):
        """Ask for one chunk, from ``time`` on; the cycle in which its last word is taken."""
        ready = self.scaled + (self.pace if kind.finished else self.delays.lag + 1)
        self.read = max(time, self.read + 1, self.left[0] + 2, ready)
        if kind.finished:
            self.scaled = self.read
        way = self.delays.finish if kind.finished else self.delays.raw
        there = self.read + way + self.delays.landing
        # What is not gathered waits for the word that is.
        first = max(there, self.gone + 1, 0 if kind.gathered else self.word + 1)
        self.gone = first + kind.words - 1
        self.left.append(self.gone)
        if kind.gathered:
            self.word = self.gone + 1
        return self.gone + kind.gathered
