"""The output stage of the cycle model: how results go from their buffer to the result stream."""

from collections import deque
from dataclasses import dataclass, replace

from weft.commands import JobFlag, epilogue_flags, result
from weft.cycles.repetition import ARRAY_TO_OUTPUT, repeat
from weft.timing import Latencies

__all__ = ["OutputStage", "ResultKind"]


@dataclass(frozen=True)
class ResultKind:
    """How the results of a job leave.

    Attributes
    ----------
    finished : bool
        They are requantized, rounded or clamped.
    gathered : bool
        Several chunks share a word of the stream, which leaves a cycle after the last of them.
    words : int
        Words of the stream that a chunk takes, each a cycle.
    bytes : int
        Size of a result.
    """

    finished: bool
    gathered: bool
    words: int
    bytes: int

    @classmethod
    def of(cls, latencies: Latencies, flags: JobFlag) -> "ResultKind":
        """The kind of the results of a job with ``flags``."""
        config = latencies.config
        through = epilogue_flags(config)
        if config.dtype == "int8":
            through = through[:1]  # a table alone does nothing
        number = result(config, flags)
        finished = any(flag in flags for flag in through)
        gathered = number.bytes * config.lanes < config.bytes_out
        return cls(finished, gathered, latencies.chunk_words(number), number.bytes)

    @property
    def ending(self) -> "ResultKind":
        """The kind of a word without results that ends a job."""
        return replace(self, words=1)


class OutputStage:
    """The times at which chunks of results are read from their buffer and sent.

    A chunk is read when it is written and has a place at the end of the pipeline, arrives there
    after the latency of its kind, and frees its place when its last word is sent.

    Attributes
    ----------
    read : int
        Cycle in which the last chunk was read.
    end : int
        Cycle in which the last word was taken.
    released : deque of int
        Cycles in which the result buffer got free, of as many passes as it holds, oldest first.
    """

    def __init__(self, config, latencies, margins):
        self.margins = margins
        self._interval = config.scale_cycles  # between chunks that are finished
        self._lag = latencies.epilogue_lag + 1  # from a chunk that is finished to one that is not
        self._latency = tuple(
            latency + latencies.reorder_latency
            for latency in (latencies.sum_latency, latencies.epilogue_latency)
        )
        self.read = self.end = -1
        self._sent = -1  # the last chunk was sent
        self._finished = -self._lag  # the last chunk to be finished was read
        self._word = -1  # the last word with several chunks was sent
        # When each place got free.
        self._freed = deque([-1] * latencies.reorder_depth, latencies.reorder_depth)
        self.released = deque([-1] * latencies.buffer_passes, latencies.buffer_passes)

    def key(self):
        """The times relative to `read`, as far as they can still delay a chunk.

        The next chunks are read one cycle after another at the earliest.
        """
        read = self.read
        return (
            max(self._sent - read, self._latency[0]),
            max(self._word, self._sent) - read,
            max(self._finished - read, 1 - max(self._interval, self._lag)),
            *[max(freed - read, n - 1) for n, freed in enumerate(self._freed)],
        )

    def advance(self, cycles):
        """Add to the times of the chunks."""
        self.read += cycles
        self.end += cycles
        self._sent += cycles
        self._finished += cycles
        self._word += cycles
        self._freed.extend([freed + cycles for freed in self._freed])

    def tile(self, time: int, interval: int, rows: int, count: int, kind: ResultKind) -> None:
        """Send rows of ``count`` chunks, written at ``time`` and one interval after another."""
        if interval:
            times = _Rows(self, time, interval)
            repeat(times, range(rows), lambda _: times.send(count, kind))
        else:
            self.chunks(time, rows * count, kind)

    def chunks(self, time: int, count: int, kind: ResultKind) -> None:
        """Send chunks that are all written at ``time``."""
        pace = max(kind.words, self._interval if kind.finished else 1)
        places, steady = self._freed.maxlen, 0
        while count and steady <= places:
            read, sent = self.read, self._sent
            self.chunk(time, kind)
            count -= 1
            steady = steady + 1 if self.read - read == self._sent - sent == pace else 0
        if not count:
            return
        # Each place has been taken at one pace, and so all that follow are.
        more = count * pace
        self.read += more
        self.end += more
        self._sent += more
        self._finished += more * kind.finished
        self._word += more * kind.gathered
        self._freed.extend([freed + more for freed in self._freed])

    def chunk(self, time: int, kind: ResultKind) -> None:
        """Send a chunk that is written at ``time``."""
        finished, freed = kind.finished, self._freed
        own = max(
            self.read + 1, freed[0] + 2,
            self._finished + (self._interval if finished else self._lag),
        )
        self.read = read = self.margins.later(ARRAY_TO_OUTPUT, time, own)
        if finished:
            self._finished = read
        first = max(read + self._latency[finished], self._sent + 1)
        # What shares no word with others waits for the word that others share.
        if not kind.gathered:
            first = max(first, self._word + 1)
        self._sent = self.end = first + kind.words - 1
        freed.append(self._sent)
        if kind.gathered:
            self.end = self._word = self._sent + 1


class _Rows:
    """The output stage while rows of a tile are written, ``interval`` cycles one after another."""

    totals = ()

    def __init__(self, output, time, interval):
        self._output = output
        self._time = time  # the next row is written
        self._interval = interval
        self.margins = output.margins

    def send(self, count, kind):
        self._output.chunks(self._time, count, kind)
        self._time += self._interval

    def key(self):
        return self._output.key()

    def clocks(self):
        return 0, self._time, self._output.read

    def advance(self, _, array, output):
        self._time += array
        self._output.advance(output)
