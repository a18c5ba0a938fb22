"""Tiles in the cycle model: they pass the tile gate, form passes, run and drain."""

from collections import deque
from dataclasses import dataclass
from math import lcm

from weft.commands import JobFlag
from weft.cycles.output import OutputStage, ResultKind
from weft.cycles.repetition import LOADER_TO_ARRAY, OUTPUT_TO_ARRAY, Slack, repeat
from weft.latencies import RELEASE, STEP
from weft.timing import Latencies

__all__ = [
    "ACTIVE", "STALLED", "STARVED", "WORDS_IN", "WORDS_OUT", "Array", "FeedTimes", "TileTiming",
]


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
        self._output.send_chunk(start + ANNOUNCE_LATENCY, kind)
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
                self._output.send_chunk(last + slot + ANNOUNCE_LATENCY, kind.status_word)
        else:
            last = self._wait_for_space(last)
            written = last + self.slots - 1 + self._write_latency
            interval = self.slots if self.slots > 1 else 0
            for slot, (rows, cols, _) in enumerate(tiles):
                chunks = -(-cols // self._lanes)
                self._output.send_tile(written + slot, interval, rows, chunks, kind)
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


@dataclass
class FeedTimes:
    """The cycles in which the panels of an operand are ready, load by load.

    Attributes
    ----------
    loads : list of [int, int, int]
        For each load: the cycle in which its first panel is ready, the cycles from panel to
        panel, and the number of panels.
    """

    loads: list[list[int]]

    @property
    def panels(self):
        """Number of panels."""
        return sum(panels for _, _, panels in self.loads)

    def at(self, panel: int) -> tuple[int, int, int]:
        """The cycle of a panel, the interval of its load, and the panels left in its load."""
        for first, interval, panels in self.loads:
            if panel < panels:
                return first + panel * interval, interval, panels - panel
            panel -= panels
        raise IndexError(panel)

    def advance(self, cycles):
        """Add ``cycles`` to all times."""
        for load in self.loads:
            load[0] += cycles


def _state(stage):
    """The attributes of a stage, with copies of the mutable ones."""
    return {
        name: value.copy() if isinstance(value, deque) else value
        for name, value in vars(stage).items()
    }


class TileTiming:
    """The array and the output stage, for one job after another.

    Parameters
    ----------
    config : Config
    output : type
        Class of the output stage.

    Attributes
    ----------
    totals : list of int
        Counts; `weft.cycles.array` has the indices.
    slack : Slack
    """

    def __init__(self, config, output=OutputStage):
        self._config = config
        self.latencies = latencies = Latencies.of(config)
        self.totals = [0] * 5
        self.slack = Slack()
        self.output = output(config, latencies, self.slack)
        self.array = Array(config, latencies, self.output, self.slack, self.totals)

    def key(self):
        return self.array.key(), self.output.key()

    def clocks(self):
        return 0, self.array.time, self.output.read

    def advance(self, _, array, output):
        self.array.advance(array)
        self.output.advance(output)
        self.output.released.extend([cycle + output for cycle in self.output.released])

    def save(self):
        """The state, for `restore`."""
        return [_state(stage) for stage in (self.array, self.output)]

    def restore(self, saved):
        """Return to a saved state."""
        for stage, state in zip((self.array, self.output), saved, strict=True):
            vars(stage).update(state)
            vars(stage).update(_state(stage))

    def reject(self, job, time):
        """Reject a job that entered the job table at ``time``."""
        self.array.start_job(time)
        self.array.reject(ResultKind.of(self.latencies, job.flags).status_word)
        self.totals[WORDS_OUT] += 1

    def run(self, job, time, feeds):
        """Compute a job that entered the job table at ``time``.

        ``feeds`` has the `FeedTimes` of A and of B; None if the operand is resident.
        """
        self.array.start_job(time)
        _JobTiles(self, self._config, job, feeds).run()


class _JobTiles:
    """The tiles of a job, numbered row by row, and their passes."""

    def __init__(self, timing, config, job, feeds):
        self._timing = timing
        self._slots = timing.latencies.slots
        self._job = job
        self._feeds = feeds
        # Rows of tiles, and tiles in a row.
        self._down, self._across = -(-job.m // config.rows), -(-job.n // config.cols)
        self._total = self._down * self._across
        self._height, self._width = config.rows, config.cols
        # Rows of the lowest tiles, and columns of the rightmost ones.
        self._bottom = job.m - (self._down - 1) * config.rows
        self._right = job.n - (self._across - 1) * config.cols
        self._kind = kind = ResultKind.of(timing.latencies, job.flags)
        self._rounds = steps = -(-job.k // config.depth)
        if JobFlag.PRELOAD in job.flags and JobFlag.BROADCAST not in job.flags:
            self._rounds += config.rows
        timing.totals[ACTIVE] += steps * self._total
        if JobFlag.KEEP not in job.flags:
            chunks = (self._across - 1) * -(-config.cols // config.lanes)
            chunks = job.m * (chunks + -(-self._right // config.lanes))
            size = chunks * config.lanes * kind.bytes
            timing.totals[WORDS_OUT] += -(-size // config.bytes_out)

    def run(self):
        """Compute all passes."""
        a, b = self._feeds
        narrow = self._right < self._width
        if not (a or narrow):
            self._run(0, self._total)
            return
        # The tiles of a row differ: the first one may wait for A, the last one may be narrow.
        # After this number of tiles, a pass starts again at the start of a row of tiles.
        cycle = lcm(self._across, self._slots)
        # The tiles of the first row may wait for B. The tiles of the last row may be lower.
        tile = self._run(0, self._across)
        end = self._total - self._across * (self._bottom < self._height)
        while tile < end:
            stop, interval = end, 0
            row = -(-tile // self._across)
            if a and row < self._down:
                _, interval, rows = a.at(row)
                stop = min(end, (row + rows) * self._across)
            count = (stop - tile) // cycle
            items = range(tile, tile + count * cycle, cycle)
            interval *= cycle // self._across
            repeat(
                self._timing, items, lambda first: self._run(first, first + cycle),
                interval=interval,
            )
            tile = self._run(items.stop, stop)
        self._run(tile, self._total)

    def _run(self, tile, stop):
        """Compute passes from ``tile`` on until one reaches ``stop``; returns the next tile."""
        while tile < stop:
            count, interval = self._equal_passes(tile)
            count = max(1, min(count, (stop - tile) // self._slots))
            items = range(tile, tile + count * self._slots, self._slots)
            if count == 1:
                self._pass(tile)
            else:
                repeat(self._timing, items, self._pass, interval=interval * self._slots)
            tile = items.stop
        return tile

    def _equal_passes(self, tile):
        """The number of equal passes from ``tile`` on, and the interval of their panels of B."""
        a, b = self._feeds
        row, column = divmod(tile, self._across)
        narrow = self._right < self._width
        if a and not column or narrow and column == self._across - 1:
            return 0, 0
        # The last row may be lower.
        lower = self._bottom < self._height and row < self._down - 1
        stop, interval = self._total - self._across * lower, 0
        if a or narrow:
            stop = (row + 1) * self._across - narrow
        if b and not row:
            _, interval, panels = b.at(column)
            stop = min(stop, tile + panels, self._across)
        return (stop - tile) // self._slots, interval

    def _pass(self, tile):
        """Compute the pass that starts with ``tile``."""
        tiles = [self._tile(n) for n in range(tile, min(tile + self._slots, self._total))]
        flags = self._job.flags
        accumulates, keeps = JobFlag.ACCUMULATE in flags, JobFlag.KEEP in flags
        self._timing.array.run(tiles, self._rounds, self._kind, accumulates, keeps)

    def _tile(self, tile):
        """The rows and columns of a tile, and the cycle in which its panels are ready.

        The cycle is None if earlier tiles of its row and of its column waited for its panels.
        """
        a, b = self._feeds
        row, column = divmod(tile, self._across)
        ready = [a.at(row)[0]] if a and not column else []
        if b and not row:
            ready.append(b.at(column)[0])
        return (
            self._bottom if row == self._down - 1 else self._height,
            self._right if column == self._across - 1 else self._width,
            max(ready, default=None),
        )
