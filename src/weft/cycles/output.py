"""The output stage of the cycle model: results from the result buffer to the result stream."""

from collections import deque
from dataclasses import dataclass, replace

from weft.commands import JobFlag, epilogue_flags, result
from weft.cycles.repetition import ARRAY_TO_OUTPUT, repeat
from weft.timing import Latencies

__all__ = ["IdealOutput", "OutputStage", "ResultKind"]


@dataclass(frozen=True)
class ResultKind:
    """Path and size of the results of a job.

    Attributes
    ----------
    epilogue : bool
        The results pass through the epilogue, which requantizes, rounds or clamps them.
    packed : bool
        Several chunks share a word of the stream. It is sent one cycle after the last of them.
    words : int
        Words of the stream that a chunk occupies; one word a cycle.
    bytes : int
        Size of a result.
    """

    epilogue: bool
    packed: bool
    words: int
    bytes: int

    @classmethod
    def of(cls, latencies: Latencies, flags: JobFlag) -> "ResultKind":
        """The kind of the results of a job with ``flags``."""
        config = latencies.config
        # TABLE has no effect without REQUANTIZE.
        enabling = [flag for flag in epilogue_flags(config) if flag != JobFlag.TABLE]
        number = result(config, flags)
        epilogue = any(flag in flags for flag in enabling)
        packed = number.bytes * config.lanes < config.bytes_out
        return cls(epilogue, packed, latencies.chunk_words(number), number.bytes)

    @property
    def status_word(self) -> "ResultKind":
        """The kind of a word without results that ends a job."""
        return replace(self, words=1)


class OutputStage:
    """The times at which chunks of results are read from the result buffer and sent.

    A chunk is read once it is written, the reorder buffer has a free entry for it, and the chunk
    before it is far enough ahead. It can be sent after the latency of its kind, in order. It frees
    its entry when its last word is sent.

    Attributes
    ----------
    read : int
        Cycle in which the last chunk was read; `repeat` takes it as the clock of this stage.
    end : int
        Cycle in which the last word left in the result stream.
    released : deque of int
        Cycles in which the sequencer learnt that the last passes left the result buffer, oldest
        first; as many passes as it holds.
    drain_interval : int
        Minimum cycles between the drains of two passes.
    """

    def __init__(self, config, latencies, slack):
        self.slack = slack
        self._interval = config.scale_cycles  # between chunks that pass through the epilogue
        # From a chunk that passes through the epilogue to one that does not.
        self._lag = latencies.epilogue_lag + 1
        self._serial = latencies.serial_epilogue
        self._latency = tuple(  # by ResultKind.epilogue
            latency + latencies.reorder_latency
            for latency in (latencies.sum_latency, latencies.epilogue_latency)
        )
        self.read = self.end = -1
        self._sent = -1  # when the last chunk was sent
        self._epilogue = -self._lag  # when the last chunk for the epilogue was read
        self._word = -1  # when the last word with several chunks was sent
        depth = latencies.reorder_depth
        self._freed = deque([-1] * depth, depth)  # when entries became free, oldest first
        self.released = deque([-1] * latencies.buffer_passes, latencies.buffer_passes)
        self.drain_interval = latencies.pass_rows + (config.drain == "folded")

    def key(self):
        """All times that can still delay a chunk, relative to `read`.

        A time that is too early to delay a chunk has no effect. It is replaced by the latest time
        without effect, so that such states are equal. The next chunk is read at the earliest one
        cycle after `read`, and each further chunk one cycle later.
        """
        read = self.read
        return (
            max(self._sent - read, self._latency[0]),
            max(self._word, self._sent) - read,
            max(self._epilogue - read, 1 - max(self._interval, self._lag)),
            *[max(freed - read, n - 1) for n, freed in enumerate(self._freed)],
        )

    def advance(self, cycles):
        """Add ``cycles`` to all times except `released`."""
        self.read += cycles
        self.end += cycles
        self._sent += cycles
        self._epilogue += cycles
        self._word += cycles
        self._freed.extend([freed + cycles for freed in self._freed])

    def tile(self, time: int, interval: int, rows: int, count: int, kind: ResultKind) -> None:
        """Send the rows of a tile, ``count`` chunks each.

        The first row is written at ``time``, and a further one every ``interval`` cycles. With an
        ``interval`` of 0 all rows are written at ``time``.
        """
        if interval:
            sender = _RowSender(self, time, interval)
            repeat(sender, range(rows), lambda _: sender.send(count, kind))
        else:
            self.chunks(time, rows * count, kind)

    def chunks(self, time: int, count: int, kind: ResultKind) -> None:
        """Send ``count`` chunks that are all written at ``time``."""
        interval = max(kind.words, self._interval if kind.epilogue else 1)
        depth, steady = self._freed.maxlen, 0
        while count and steady <= depth:
            read, sent = self.read, self._sent
            self.chunk(time, kind)
            count -= 1
            # Chunks in sequence that were read and sent ``interval`` cycles after the one before.
            steady = steady + 1 if self.read - read == self._sent - sent == interval else 0
        if not count:
            return
        # All entries of the reorder buffer now become free at this interval, so it stays the same.
        cycles = count * interval
        self.read += cycles
        self.end += cycles
        self._sent += cycles
        self._epilogue += cycles * kind.epilogue
        self._word += cycles * kind.packed
        self._freed.extend([freed + cycles for freed in self._freed])

    def chunk(self, time: int, kind: ResultKind) -> None:
        """Send a chunk that is written at ``time``."""
        epilogue, freed = kind.epilogue, self._freed
        earliest = max(
            self.read + 1, freed[0] + 2,
            self._epilogue + (self._interval if epilogue else self._lag),
        )
        if epilogue and self._serial:
            earliest = self._serial_slot(time, earliest)
        self.read = read = self.slack.later(ARRAY_TO_OUTPUT, time, earliest)
        if epilogue:
            self._epilogue = read
        first = max(read + self._latency[epilogue], self._sent + 1)
        # A chunk with words of its own waits for the word that earlier chunks share.
        if not kind.packed:
            first = max(first, self._word + 1)
        self._sent = self.end = first + kind.words - 1
        freed.append(self._sent)
        if kind.packed:
            self.end = self._word = self._sent + 1

    def _serial_slot(self, time, earliest):
        """The cycle in which a serial epilogue takes a chunk that is written at ``time``.

        Until it is empty, such cycles are multiples of the interval after the last one.
        """
        for slot in range(self._epilogue + self._interval, self._epilogue + self._lag,
                          self._interval):
            if slot >= earliest and self.slack.later(ARRAY_TO_OUTPUT, time, slot) == slot:
                return slot
        return max(earliest, self._epilogue + self._lag)


class IdealOutput(OutputStage):
    """An output stage and a drain that take no cycles: a chunk is sent when it is written."""

    def __init__(self, config, latencies, slack):
        super().__init__(config, latencies, slack)
        self.drain_interval = 0

    def key(self):
        return ()

    def tile(self, time, interval, rows, count, kind):
        self.chunk(time + (rows - 1) * interval, kind)

    def chunk(self, time, kind):
        self.read = self.end = self.slack.later(ARRAY_TO_OUTPUT, time, self.read)


class _RowSender:
    """The output stage while rows of a tile are written, one every ``interval`` cycles."""

    totals = ()

    def __init__(self, output, time, interval):
        self._output = output
        self._time = time  # when the next row is written
        self._interval = interval
        self.slack = output.slack

    def send(self, count, kind):
        """Send the next row, of ``count`` chunks."""
        self._output.chunks(self._time, count, kind)
        self._time += self._interval

    def key(self):
        return self._output.key()

    def clocks(self):
        return 0, self._time, self._output.read

    def advance(self, _, array, output):
        self._time += array
        self._output.advance(output)
