"""The last stretch of the cycle model: how long results take from their buffer to the stream."""

from collections import deque
from dataclasses import dataclass, replace

from weft.commands import JobFlag, finishes, result
from weft.timing import CORRECTION_LATENCY, Delays

__all__ = ["Kind", "Outlet"]

_STATIONS = 4  # in which a chunk may wait: buffer, collector, both of the corrector


@dataclass(frozen=True)
class Kind:
    """What the results of a job are, on their way out.

    Attributes
    ----------
    finished : bool
        They go through the pipeline.
    words : int
        Cycles that a chunk takes to leave.
    bytes : int
        Of a result.
    """

    finished: bool
    words: int
    bytes: int

    @classmethod
    def of(cls, delays: Delays, flags: JobFlag) -> "Kind":
        """That of the results of a job with ``flags``."""
        through = finishes(delays.config)
        if delays.config.dtype == "int8":
            through = through[:1]  # a table alone does nothing
        number = result(delays.config, flags)
        finished = any(flag in flags for flag in through)
        return cls(finished, delays.chunk_words(number), number.bytes)

    @property
    def ending(self) -> "Kind":
        """That of a word that has no results and only ends a job."""
        return replace(self, words=1)


class Outlet:
    """The way of chunks from the result buffer to the result stream, as cycles.

    A chunk is read, moves on when the station before the sender or the pipeline is free (with
    corrections: through two more stations, which move together), and then either is taken in some
    words or goes through the pipeline, whose stages all stand while its last chunk leaves in more
    than one. The sender takes a raw chunk when the pipeline is empty.
    """

    def __init__(self, config, delays):
        self.finish = delays.finish
        self.corrected = CORRECTION_LATENCY[config.leaf] > 0
        self.read = -1  # cycle in which the last chunk was read,
        self.left = -1  # left the collector,
        self.shown = -1  # came before the sender,
        self.gone = -1  # and left for good
        self.finished = -1  # the last one out of the pipeline was taken
        self.stands = deque()  # (first, last + 1) of the cycles in which the pipeline stands

    def chunks(self, time, count, kind):
        """Read chunks from ``time`` on; the cycle in which the last word is taken."""
        # At one pace once every station has had its first; but corrected ones are read in bursts.
        words = 1 if kind.finished else kind.words
        first = count if self.corrected and words > 1 else min(count, _STATIONS)
        for _ in range(first):
            self.chunk(time, kind)
        more = (count - first) * words
        self.read += more
        self.left += more
        self.shown += more
        self.gone += more
        self.finished += more * kind.finished
        return self.finished if kind.finished else self.gone

    def chunk(self, time, kind):
        """Read one chunk, from ``time`` on; the cycle in which its last word is taken."""
        self.read = max(time, self.left)
        if self.corrected:
            # The stations move but while the one before the sender is held.
            self.left = self._moves(max(self.read + 1, self.shown))
            self.shown = self._moves(self.left + 1)
        else:
            self.shown = self.read
        if kind.finished:
            self._through(kind.words)
        else:
            self.gone = max(self.shown, self.finished) + kind.words
        if not self.corrected:
            self.left = self.gone
        return self.finished if kind.finished else self.gone

    def _through(self, words):
        """Into the pipeline, when it moves, and out of it after so many moves."""
        while self.stands and self.stands[0][1] <= self.shown + 1:
            self.stands.popleft()
        self.gone = self.shown + 1
        for begin, end in self.stands:
            if begin <= self.gone < end:
                self.gone = end
        out = self.gone + self.finish + sum(
            end - begin for begin, end in self.stands if begin > self.gone
        )
        self.finished = out + words - 1
        if words > 1:
            self.stands.append((out, self.finished))

    def _moves(self, time):
        held = self.shown < time < self.gone
        return self.gone if held else time
