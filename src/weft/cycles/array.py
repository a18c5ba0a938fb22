"""The array stage of the cycle model: tiles pass the tile gate, form passes, run and drain."""

from collections import deque

from weft.cycles.repetition import LOADER_TO_ARRAY, OUTPUT_TO_ARRAY
from weft.latencies import RELEASE, STEP

__all__ = ["ACTIVE", "STALLED", "STARVED", "WORDS_IN", "WORDS_OUT", "Array"]

ACTIVE, STARVED, STALLED, WORDS_IN, WORDS_OUT = range(5)  # indices of the totals

# From the decision on a tile's last step to the cycle in which the output stage sees the tile.
ANNOUNCE_LATENCY = 2 + STEP


class Array:
    """The times at which tiles and passes are at each point from the job table to the drain.

    The tile generator makes a tile each cycle. A tile waits at the tile gate for its panels, then
    enters a queue of two tiles. With one slot, a tile is a pass. With more slots, the pass builder
    takes the tiles of a pass out of the queue while the previous pass is computed. A pass runs in
    rounds: one step for each slot, for each word of K.

    Parameters
    ----------
    config : Config
    latencies : Latencies
    output : OutputStage
    slack : Slack
    totals : list of int
        Counts, by the indices `ACTIVE` to `WORDS_OUT`.
    """

    def __init__(self, config, latencies, output, slack, totals):
        self.slots = latencies.slots
        self._write_latency = latencies.write_latency
        self._lanes = config.lanes
        self._folded = config.drain == "folded"
        # Minimum cycles between the drains of two passes.
        self._drain_interval = output.drain_interval
        self._output = output
        self._slack = slack
        self._totals = totals
        # Cycles of events.
        self._gated = -1  # the last tile passed the tile gate
        self._queued = -1  # the last tile entered the queue
        self._dequeued = deque([-1, -1], 2)  # the last two tiles left the queue
        self._ends = deque([-1, -1], 2)  # the last steps of the last two passes
        self._kept = False  # whether the last pass kept its sums in the array
        self._phase = 0  # a cycle with a step of slot 0; one such cycle in each round
        self._holds_sums = False  # whether the array holds sums that were not drained
        self._drained = -self._drain_interval  # cycle of the decision on the last drain

    @property
    def time(self):
        """The cycle of the last step of the last pass; the clock of this stage."""
        return self._ends[-1]

    def key(self):
        """All times that can still delay a pass, relative to `time`, and the kept sums."""
        time, output = self._ends[-1], self._output
        if self._kept:
            # No drain happens meanwhile: only a release after `time` can delay a pass.
            released = [max(0, cycle - time) for cycle in output.released]
            kept = ((self._phase - time) % self.slots, time - output.read)
        else:
            released = [cycle - output.read for cycle in output.released]
            kept = ()
        return (
            self._holds_sums, kept, self._gated - time, self._queued - time, self._ends[0] - time,
            max(self._drained - time, 1 - self._drain_interval),
            *[dequeued - time for dequeued in self._dequeued], *released,
        )

    def advance(self, cycles):
        """Add ``cycles`` to all times."""
        self._gated += cycles
        self._queued += cycles
        self._phase += cycles
        self._drained += cycles
        for times in (self._dequeued, self._ends):
            times.extend([time + cycles for time in times])

    def start_job(self, time):
        """Give the tile generator a job that entered the job table at ``time``."""
        start = self._slack.later(LOADER_TO_ARRAY, time + 1, self._gated)
        self._queued = max(self._queued, start + 1)

    def reject(self, kind):
        """End a job without computing anything, with a word of ``kind``."""
        self._phase = start = self._first_step([None])
        self._output.chunk(start + ANNOUNCE_LATENCY, kind)
        self._end_pass(start)

    def run(self, tiles, rounds, kind, accumulates, keeps):
        """Compute a pass.

        Parameters
        ----------
        tiles : list of (int, int, int or None)
            For each tile its rows, its columns, and the cycle in which its panels are ready.
        rounds : int
        kind : ResultKind
        accumulates : bool
            The sums continue the sums that the previous job kept.
        keeps : bool
            The sums stay in the array.
        """
        start = self._first_step([ready for _, _, ready in tiles])
        if self._folded:
            start = self._wait_for_drain(start, accumulates)
        last = start + (rounds - 1) * self.slots  # first step of the last round
        self._kept = self._holds_sums = keeps
        if keeps:
            for slot in range(len(tiles)):
                self._output.chunk(last + slot + ANNOUNCE_LATENCY, kind.status_word)
        else:
            last = self._wait_for_space(last)
            written = last + self.slots - 1 + self._write_latency
            interval = self.slots if self.slots > 1 else 0
            for slot, (rows, cols, _) in enumerate(tiles):
                chunks = -(-cols // self._lanes)
                self._output.tile(written + slot, interval, rows, chunks, kind)
            self._output.released.append(self._output.read + RELEASE)
        self._phase = last
        self._end_pass(last + self.slots - 1)

    def _first_step(self, ready):
        """The first step of a pass, from the cycles in which the panels of its tiles are ready."""
        if self.slots == 1:
            return self._tile_valid(ready[0])
        previous_end, end = self._ends
        for cycle in ready:
            self._dequeued.append(max(self._tile_valid(cycle), previous_end + 1))
        start = max(self._dequeued[-1], end) + 1
        if self._kept:
            start += (self._phase - start) % self.slots
        return start

    def _tile_valid(self, ready):
        """The cycle in which the next tile is valid at the end of the queue."""
        second, first = self._dequeued
        generated = self._queued + 1
        self._gated = generated + 1
        if ready is not None:
            self._gated = self._slack.later(LOADER_TO_ARRAY, ready, generated + 1)
        self._totals[STARVED] += max(0, self._gated - max(generated, first) - 1)
        self._queued = max(self._gated, second + 1)
        return max(self._queued, first) + 1

    def _wait_for_drain(self, start, accumulates):
        """The first step of a pass with a folded drain: after the previous drain, or a flush."""
        start = max(start, self._drained + self._drain_interval)
        if self._holds_sums and not accumulates:
            self._drained = start + 1
            start = self._drained + self._drain_interval
        return start

    def _wait_for_space(self, last):
        """The start of the last round: the result buffer has space and the drain is free."""
        space = self._slack.later(OUTPUT_TO_ARRAY, self._output.released[0] + 1, last)
        self._totals[STALLED] += self._whole_rounds(space - last)
        drain_free = self._drained + self._drain_interval
        self._drained = last + self._whole_rounds(max(space, drain_free) - last)
        return self._drained

    def _whole_rounds(self, cycles):
        """``cycles``, at least 0, rounded up to whole rounds of all slots."""
        return max(0, -(-cycles // self.slots)) * self.slots

    def _end_pass(self, last):
        """Store the cycle of the last step of a pass."""
        self._ends.append(last)
        if self.slots == 1:
            self._dequeued.append(last)
