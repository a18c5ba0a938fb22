"""The output stage of the cycle model: results from the result buffer to the result stream.

The epilogue makes results of sums; the reorder buffer keeps them until the stream takes them.
"""

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
        result_format = result(config, flags)
        epilogue = any(flag in flags for flag in enabling)
        packed = result_format.bytes * config.lanes < config.bytes_out
        words = latencies.chunk_words(result_format)
        return cls(epilogue, packed, words, result_format.bytes)

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
    slack : Slack
        Notes how early the array was for this stage. Its `later` is the maximum of two times.
    read : int
        Cycle in which the last chunk was read; `repeat` takes it as the clock of this stage.
    end : int
        Cycle in which the last word left in the result stream.
    released : deque of int
        Cycles in which the sequencer learnt that the last passes left the result buffer, oldest
        first; as many passes as the buffer holds. The array's stage appends and advances them.
    drain_interval : int
        Minimum cycles between the drains of two passes.
    """

    def __init__(self, config, latencies, slack):
        self.slack = slack
        self._interval = config.scale_cycles  # between chunks that pass through the epilogue
        # From a chunk that passes through the epilogue to one that does not.
        self._bypass_interval = latencies.epilogue_lag + 1
        self._serial = latencies.serial_epilogue
        self._latency = tuple(  # by ResultKind.epilogue
            latency + latencies.reorder_latency
            for latency in (latencies.sum_latency, latencies.epilogue_latency)
        )
        self.read = self.end = -1
        self._sent = -1  # when the last chunk was sent
        # When the last chunk for the epilogue was read.
        self._epilogue_read = -self._bypass_interval
        self._shared_word_sent = -1  # when the last word with several chunks was sent
        entries = latencies.reorder_depth
        self._freed = deque([-1] * entries, entries)  # when entries became free, oldest first
        self.released = deque([-1] * latencies.buffer_passes, latencies.buffer_passes)
        # A folded drain shifts once more, so that all sums are 0 for the next pass.
        self.drain_interval = latencies.pass_rows + (config.drain == "folded")

    def key(self):
        """All times that can still delay a chunk, relative to `read`.

        A time that is too early to delay a chunk has no effect. It is replaced by the latest time
        without effect, so that such states are equal. The next chunk is read at the earliest one
        cycle after `read`, and each further chunk one cycle later.
        """
        read = self.read
        # Entry n is used by the chunk that is read n + 1 cycles after `read` or later, at the
        # earliest 2 cycles after the entry became free.
        return (
            max(self._sent - read, self._latency[0]),
            max(self._shared_word_sent, self._sent) - read,
            max(self._epilogue_read - read, 1 - max(self._interval, self._bypass_interval)),
            *[max(freed - read, n - 1) for n, freed in enumerate(self._freed)],
        )

    def advance(self, cycles):
        """Add ``cycles`` to all times except `released`, which are times of the array."""
        self.read += cycles
        self.end += cycles
        self._sent += cycles
        self._epilogue_read += cycles
        self._shared_word_sent += cycles
        self._freed.extend([freed + cycles for freed in self._freed])

    def send_tile(self, time: int, interval: int, rows: int, count: int, kind: ResultKind) -> None:
        """Send the rows of a tile, ``count`` chunks each.

        The first row is written at ``time``, and a further one every ``interval`` cycles. With an
        ``interval`` of 0 all rows are written at ``time``.
        """
        if interval:
            sender = _RowSender(self, time, interval)
            repeat(sender, range(rows), lambda _: sender.send_row(count, kind))
        else:
            self.send_chunks(time, rows * count, kind)

    def send_chunks(self, time: int, count: int, kind: ResultKind) -> None:
        """Send ``count`` chunks that are all written at ``time``."""
        interval = max(kind.words, self._interval if kind.epilogue else 1)
        entries, steady = self._freed.maxlen, 0
        while count and steady <= entries:
            read, sent = self.read, self._sent
            self.send_chunk(time, kind)
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
        self._epilogue_read += cycles * kind.epilogue
        self._shared_word_sent += cycles * kind.packed
        self._freed.extend([freed + cycles for freed in self._freed])

    def send_chunk(self, time: int, kind: ResultKind) -> None:
        """Send a chunk that is written at ``time``."""
        epilogue, freed = kind.epilogue, self._freed
        earliest = max(
            # The scheduler registers that an entry became free, and then counts it.
            self.read + 1, freed[0] + 2,
            self._epilogue_read + (self._interval if epilogue else self._bypass_interval),
        )
        if epilogue and self._serial:
            earliest = self._serial_slot(time, earliest)
        self.read = read = self.slack.later(ARRAY_TO_OUTPUT, time, earliest)
        if epilogue:
            self._epilogue_read = read
        first = max(read + self._latency[epilogue], self._sent + 1)
        # A chunk with words of its own waits for the word that earlier chunks share.
        if not kind.packed:
            first = max(first, self._shared_word_sent + 1)
        self._sent = self.end = first + kind.words - 1
        freed.append(self._sent)
        if kind.packed:
            self.end = self._shared_word_sent = self._sent + 1

    def _serial_slot(self, time, earliest):
        """The cycle in which a serial epilogue takes a chunk that is written at ``time``.

        While it holds a chunk, it takes the next one only whole multiples of its interval after the
        last one that it took; once it is empty, in any cycle.
        """
        empty = self._epilogue_read + self._bypass_interval
        for slot in range(self._epilogue_read + self._interval, empty, self._interval):
            if slot >= earliest and self.slack.later(ARRAY_TO_OUTPUT, time, slot) == slot:
                return slot
        return max(earliest, empty)


class IdealOutput(OutputStage):
    """An output stage and a drain that take no cycles: a chunk is sent when it is written.

    `weft.cycles.model` compares a core with it, to tell what limits a job.
    """

    def __init__(self, config, latencies, slack):
        super().__init__(config, latencies, slack)
        self.drain_interval = 0

    def key(self):
        return ()

    def send_tile(self, time, interval, rows, count, kind):
        self.send_chunk(time + (rows - 1) * interval, kind)

    def send_chunk(self, time, kind):
        self.read = self.end = self.slack.later(ARRAY_TO_OUTPUT, time, self.read)


class _RowSender:
    """The output stage while rows of a tile are written, one every ``interval`` cycles.

    It has what `weft.cycles.repetition.repeat` needs of its ``stages``: the rows' times are the
    clock of the array, and there is no loader.
    """

    totals = ()

    def __init__(self, output, time, interval):
        self._output = output
        self._time = time  # when the next row is written
        self._interval = interval
        self.slack = output.slack

    def send_row(self, count, kind):
        """Send the next row, of ``count`` chunks."""
        self._output.send_chunks(self._time, count, kind)
        self._time += self._interval

    def key(self):
        return self._output.key()

    def clocks(self):
        return 0, self._time, self._output.read

    def advance(self, _, array_cycles, output_cycles):
        self._time += array_cycles
        self._output.advance(output_cycles)
