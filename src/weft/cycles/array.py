"""The array of the cycle model: tiles are offered, gathered in passes, computed and drained."""

from collections import deque

from weft.cycles.repetition import LOADER_TO_ARRAY, OUTPUT_TO_ARRAY
from weft.timing import STEP_LATENCY

__all__ = ["ACTIVE", "STALLED", "STARVED", "WORDS_IN", "WORDS_OUT", "Array"]

ACTIVE, STARVED, STALLED, WORDS_IN, WORDS_OUT = range(5)  # what is counted: indices of the totals

ANNOUNCE = 2 + STEP_LATENCY  # from the decision on a tile's end to the output stage's look at it


class Array:
    """The times at which tiles and passes are at each point on their way to the output stage.

    The tile generator makes a tile a cycle, the tile gate waits for its panels, and the tile queue
    has room for two. With one slot a tile is a pass. With more, the tiles of a pass are gathered
    while the pass before is computed.

    Parameters
    ----------
    config, latencies
    output : OutputStage
    margins : Margins
    totals : list of int
    """

    def __init__(self, config, latencies, output, margins, totals):
        self.slots = latencies.slots
        self._written = latencies.write_latency
        self._lanes = config.lanes
        self._folded = config.drain == "folded"
        # Cycles between the results of two passes, at least.
        self._drain = latencies.pass_rows + self._folded
        self._output = output
        self._margins = margins
        self._totals = totals
        self._ready = -1  # the last tile had its panels,
        self._queued = -1  # and entered the queue
        self._taken = deque([-1, -1], 2)  # the last two tiles left the queue
        self._ends = deque([-1, -1], 2)  # the last steps of the last two passes
        self._kept = False  # the last pass left its sums in the array,
        self._phase = 0  # and its first slot has its steps in this cycle, modulo the slots
        self._undrained = False  # the array holds kept sums
        self._drained = -self._drain  # the last drain began

    @property
    def time(self):
        """The last step of the last pass."""
        return self._ends[-1]

    def key(self):
        """The times relative to `time`, as far as they can still delay a pass; what is kept."""
        time, output = self._ends[-1], self._output
        if self._kept:
            # Nothing is drained meanwhile: only buffers that get free after `time` matter.
            released = [max(0, cycle - time) for cycle in output.released]
            held = ((self._phase - time) % self.slots, time - output.read)
        else:
            released = [cycle - output.read for cycle in output.released]
            held = ()
        return (
            self._undrained, held, self._ready - time, self._queued - time, self._ends[0] - time,
            max(self._drained - time, 1 - self._drain), *[each - time for each in self._taken],
            *released,
        )

    def advance(self, cycles):
        """Add to all times."""
        self._ready += cycles
        self._queued += cycles
        self._phase += cycles
        self._drained += cycles
        for times in (self._taken, self._ends):
            times.extend([time + cycles for time in times])

    def take(self, time):
        """Give a job that was in the table at ``time`` to the tile generator."""
        begin = self._margins.later(LOADER_TO_ARRAY, time + 1, self._ready)
        self._queued = max(self._queued, begin + 1)

    def reject(self, ending):
        """Answer a job without computing anything."""
        self._phase = start = self._start([None])
        self._output.chunk(start + ANNOUNCE, ending)
        self._end(start)

    def run(self, tiles, rounds, kind, accumulates, keeps):
        """Compute a pass of tiles, each with its rows, its columns and when its panels are ready.
        """
        start = self._start([ready for _, _, ready in tiles])
        if self._folded:
            start = self._flush(start, accumulates)
        last = start + (rounds - 1) * self.slots  # the last step of the first slot
        self._kept = self._undrained = keeps
        if keeps:
            ending = kind.ending
            for slot in range(len(tiles)):
                self._output.chunk(last + slot + ANNOUNCE, ending)
        else:
            last = self._gate(last)
            written = last + self.slots - 1 + self._written
            interval = self.slots if self.slots > 1 else 0
            for slot, (rows, cols, _) in enumerate(tiles):
                chunks = -(-cols // self._lanes)
                self._output.tile(written + slot, interval, rows, chunks, kind)
            self._output.released.append(self._output.read)
        self._phase = last
        self._end(last + self.slots - 1)

    def _start(self, ready):
        """The first step of a pass of tiles, of which each has its panels from a cycle on."""
        if self.slots == 1:
            return self._offer(ready[0])
        before, last = self._ends
        for each in ready:
            self._taken.append(max(self._offer(each), before + 1))
        start = max(self._taken[-1], last) + 1
        if self._kept:
            start += (self._phase - start) % self.slots
        return start

    def _offer(self, ready):
        """The cycle from which on the next tile is on offer at the end of the queue."""
        second, first = self._taken
        made = self._queued + 1
        self._ready = made + 1
        if ready is not None:
            self._ready = self._margins.later(LOADER_TO_ARRAY, ready, made + 1)
        self._totals[STARVED] += max(0, self._ready - max(made, first) - 1)
        self._queued = max(self._ready, second + 1)
        return max(self._queued, first) + 1

    def _flush(self, start, accumulates):
        """The first step where sums leave through the accumulators: after those before it."""
        start = max(start, self._drained + self._drain)
        if self._undrained and not accumulates:
            self._drained = start + 1
            start = self._drained + self._drain
        return start

    def _gate(self, last):
        """The start of the last round, when the result buffer has room and the drain is free."""
        room = self._margins.later(OUTPUT_TO_ARRAY, self._output.released[0] + 1, last)
        self._totals[STALLED] += self._turns(room - last)
        self._drained = last + self._turns(max(room, self._drained + self._drain) - last)
        return self._drained

    def _turns(self, cycles):
        """``cycles``, if there are any, as whole turns of all slots."""
        return max(0, -(-cycles // self.slots)) * self.slots

    def _end(self, last):
        """The last step of a pass."""
        self._ends.append(last)
        if self.slots == 1:
            self._taken.append(last)
