"""The tiles of a job in the cycle model: alike passes and rows are computed as one."""

from collections import deque
from dataclasses import dataclass
from math import lcm

from weft.commands import JobFlag
from weft.cycles.array import ACTIVE, WORDS_OUT, Array
from weft.cycles.output import OutputStage, ResultKind
from weft.cycles.repetition import Margins, repeat
from weft.timing import Latencies

__all__ = ["Feeds", "TileTiming"]


@dataclass
class Feeds:
    """When the panels of an operand are ready, load by load.

    Attributes
    ----------
    loads : list of [int, int, int]
        The cycle in which the array has the first panel, the cycles from panel to panel, and the
        panels.
    """

    loads: list[list[int]]

    @property
    def panels(self):
        return sum(panels for _, _, panels in self.loads)

    def at(self, panel: int) -> tuple[int, int, int]:
        """The cycle of a panel, the cycles to the next one, and how many follow at this pace."""
        for first, pace, panels in self.loads:
            if panel < panels:
                return first + panel * pace, pace, panels - panel
            panel -= panels
        raise IndexError(panel)

    def advance(self, cycles):
        for load in self.loads:
            load[0] += cycles


def _state(station):
    """Its attributes; copies of those that change in place."""
    return {
        name: value.copy() if isinstance(value, deque) else value
        for name, value in vars(station).items()
    }


class TileTiming:
    """The array and the output stage, which compute one job after another.

    Attributes
    ----------
    totals : list of int
        What is counted: `weft.cycles.array` has the indices.
    margins : Margins
    """

    def __init__(self, config):
        self._config = config
        self.latencies = latencies = Latencies.of(config)
        self.totals = [0] * 5
        self.margins = Margins()
        self.output = OutputStage(config, latencies, self.margins)
        self.array = Array(config, latencies, self.output, self.margins, self.totals)

    def key(self):
        return self.array.key(), self.output.key()

    def clocks(self):
        return 0, self.array.time, self.output.read

    def advance(self, _, array, output):
        self.array.advance(array)
        self.output.advance(output)
        self.output.released.extend([cycle + output for cycle in self.output.released])

    def save(self):
        return [_state(station) for station in (self.array, self.output)]

    def restore(self, saved):
        for station, state in zip((self.array, self.output), saved, strict=True):
            vars(station).update(state)
            vars(station).update(_state(station))

    def reject(self, job, time):
        """Answer a job that was in the table at ``time`` without computing anything."""
        self.array.take(time)
        self.array.reject(ResultKind.of(self.latencies, job.flags).ending)
        self.totals[WORDS_OUT] += 1

    def run(self, job, time, feeds):
        """Compute a job that was in the table at ``time``; ``feeds`` of A and B, or None."""
        self.array.take(time)
        _Tiles(self, self._config, job, feeds).run()


class _Tiles:
    """The tiles of a job, row by row, and their passes."""

    def __init__(self, pipeline, config, job, feeds):
        self._pipeline = pipeline
        self._slots = pipeline.latencies.slots
        self._job = job
        self._feeds = feeds
        self._down, self._across = -(-job.m // config.rows), -(-job.n // config.cols)
        self._total = self._down * self._across
        self._height, self._width = config.rows, config.cols
        # The sizes of the last tiles.
        self._bottom = job.m - (self._down - 1) * config.rows
        self._right = job.n - (self._across - 1) * config.cols
        self._kind = kind = ResultKind.of(pipeline.latencies, job.flags)
        self._rounds = steps = -(-job.k // config.depth)
        if JobFlag.PRELOAD in job.flags and JobFlag.BROADCAST not in job.flags:
            self._rounds += config.rows
        pipeline.totals[ACTIVE] += steps * self._total
        if JobFlag.KEEP not in job.flags:
            chunks = (self._across - 1) * -(-config.cols // config.lanes)
            chunks = job.m * (chunks + -(-self._right // config.lanes))
            pipeline.totals[WORDS_OUT] += -(-chunks * config.lanes * kind.bytes // config.bytes_out)

    def run(self):
        """Compute all passes."""
        a, b = self._feeds
        short = self._width - self._right
        if not (a or short):
            self._walk(0, self._total)
            return
        # Some columns of tiles are unlike the others. Whole passes repeat after so many tiles:
        cycle = lcm(self._across, self._slots)
        # The first row may wait for B, and the last one may be lower.
        tile = self._walk(0, self._across)
        end = self._total - self._across * (self._bottom < self._height)
        while tile < end:
            stop, pace = end, 0
            row = -(-tile // self._across)
            if a and row < self._down:
                _, pace, more = a.at(row)
                stop = min(end, (row + more) * self._across)
            count = (stop - tile) // cycle
            items = range(tile, tile + count * cycle, cycle)
            pace *= cycle // self._across
            repeat(self._pipeline, items, lambda first: self._walk(first, first + cycle), pace=pace)
            tile = self._walk(items.stop, stop)
        self._walk(tile, self._total)

    def _walk(self, tile, stop):
        """Compute the passes from ``tile`` on until one reaches ``stop``; the tile behind it."""
        while tile < stop:
            count, pace = self._alike(tile)
            count = max(1, min(count, (stop - tile) // self._slots))
            items = range(tile, tile + count * self._slots, self._slots)
            if count == 1:
                self._pass(tile)
            else:
                repeat(self._pipeline, items, self._pass, pace=pace * self._slots)
            tile = items.stop
        return tile

    def _alike(self, tile):
        """How many passes from ``tile`` on are alike; cycles from panel to panel of B, if any."""
        a, b = self._feeds
        row, column = divmod(tile, self._across)
        short = self._right < self._width
        if a and not column or short and column == self._across - 1:
            return 0, 0
        # The last row may be lower.
        low = self._bottom < self._height and row < self._down - 1
        stop, pace = self._total - self._across * low, 0
        if a or short:
            stop = (row + 1) * self._across - short
        if b and not row:
            _, pace, more = b.at(column)
            stop = min(stop, tile + more, self._across)
        return (stop - tile) // self._slots, pace

    def _pass(self, tile):
        tiles = [self._tile(n) for n in range(tile, min(tile + self._slots, self._total))]
        flags = self._job.flags
        accumulates, keeps = JobFlag.ACCUMULATE in flags, JobFlag.KEEP in flags
        self._pipeline.array.run(tiles, self._rounds, self._kind, accumulates, keeps)

    def _tile(self, tile):
        """Its rows, its columns and, where a panel is its first, when it has it."""
        a, b = self._feeds
        row, column = divmod(tile, self._across)
        # What later tiles of the row, or of the column, need is there when this one has it.
        ready = [a.at(row)[0]] if a and not column else []
        if b and not row:
            ready.append(b.at(column)[0])
        return (
            self._bottom if row == self._down - 1 else self._height,
            self._right if column == self._across - 1 else self._width,
            max(ready, default=None),
        )
