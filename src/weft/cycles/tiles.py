"""The tiles of a job in the cycle model: equal passes and equal rows of tiles are skipped."""

from collections import deque
from dataclasses import dataclass
from math import lcm

from weft.commands import JobFlag
from weft.cycles.array import ACTIVE, WORDS_OUT, Array
from weft.cycles.output import OutputStage, ResultKind
from weft.cycles.repetition import Slack, repeat
from weft.timing import Latencies

__all__ = ["FeedTimes", "TileTiming"]


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
