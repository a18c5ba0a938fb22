"""Panels and tiles in the cycle model of lists: when the array computes them."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from weft.latencies import STEP
from weft.network_core.descriptors import join
from weft.network_core.latencies import PANEL_START, result_rows

__all__ = ["MapPlaces", "StoredJob", "TileTimes", "TimedTile", "panel_sizes"]


class MapPlaces:
    """The vectors of a map of a job, and their banks."""

    def __init__(self, config, job, map_):
        banks = self._banks = config.banks
        first = "add_input" if map_ == "add" else map_
        self._first = join(getattr(job, first), banks)
        self._pixel = join(getattr(job, f"{map_}_pixel_step"), banks)
        row_step = join(getattr(job, f"{map_}_row_step"), banks)
        self._row = row_step + (job.out_width - 1) * self._pixel
        self._width, self._depth = job.out_width, config.array.depth

    def number(self, pixel):
        """The first vector of a pixel; also of the one behind the last one."""
        y, x = divmod(pixel, self._width)
        return self._first + y * self._row + x * self._pixel

    def bank(self, pixel, byte):
        """The bank of the vector with a byte of a pixel."""
        return (self.number(pixel) + byte // self._depth) % self._banks


class StoredJob:
    """A job whose results are stored, or were: which panels of the next job pass, and when.

    `weft.hw.network_core.steps.panels.PanelGate` lets a panel pass two cycles after it was
    collected, and a cycle after a panel of this job was stored.

    Parameters
    ----------
    config : NetworkCoreConfig
    job : ListJob
    computed : int
        The cycle in which its last tile was announced.
    released : list of int
        As of `TileTimes`.
    panel_ends : list of int
        For each of its panels, the cycle of the last store.
    """

    def __init__(self, config, job, computed: int, released: list[int], panel_ends: list[int]):
        self.computed, self.released = computed, released
        output, pixels = MapPlaces(config, job, "output"), 0
        self._end = panel_ends[-1]
        self._frontiers = [output.number(0)]
        self._visible = [0]  # the cycle from which on a panel may pass by that frontier
        for size, end in zip(panel_sizes(job), panel_ends, strict=True):
            pixels += size
            self._frontiers.append(output.number(pixels))
            self._visible.append(end + 1)

    def passes(self, last: int, ready: int, collected: int) -> int:
        """The cycle in which a panel passes that reads no vector behind ``last``.

        The panel is complete in cycle ``collected``, and may leave in cycle ``ready``.
        """
        cycle = max(ready, collected + 1)
        while cycle <= self._end and ready <= self._end:
            number = bisect_right(self._visible, cycle) - 1
            if last < self._frontiers[number]:
                return cycle
            cycle = self._visible[number + 1]
        return max(ready, self._end + 1)


@dataclass(frozen=True)
class TimedTile:
    """A computed tile.

    Attributes
    ----------
    panel : int
    number : int
        Of the tile in its panel.
    rows : int
    announced : int
        The cycle in which the sequencer announces it.
    """

    panel: int
    number: int
    rows: int
    announced: int


def panel_sizes(job) -> Iterator[int]:
    """The pixels of each panel of a `weft.network_core.descriptors.ListJob`."""
    pixels = job.out_height * job.out_width
    width, repeat = (pixels, 1) if job.cross else (job.out_width, job.out_height)
    for _ in range(repeat):
        for first in range(0, width, job.panel_rows):
            yield min(job.panel_rows, width - first)


class TileTimes:
    """Iterates over the tiles of a job in their order, as `TimedTile`.

    A tile may be taken when it is :attr:`known`: its time depends on :attr:`released`.

    Parameters
    ----------
    config : NetworkCoreConfig
    job : ListJob
    start : int
        The cycle in which the job starts.
    before : StoredJob, optional
        The job before, in a core whose jobs may start before it has ended.

    Attributes
    ----------
    released : list of int
        For each tile, the cycle of the request of its last chunk. The output stage appends them. In
        front of them are those of the job before.
    """

    def __init__(self, config, job, start: int, before: "StoredJob | None" = None):
        self._rows = config.tile_rows
        self._tiles = -(-job.columns // config.array.cols)
        self._words = job.tile_words
        self._credits = result_rows(config) // self._rows
        self._start = start
        self._sizes = panel_sizes(job)
        self._before = before
        self._origins = MapPlaces(config, job, "input")
        self._span = join(job.span, config.banks)
        self.released: list[int] = before.released[-self._credits :] if before else []
        self._count = len(self.released)
        self._iterator = self._each()

    @property
    def known(self) -> bool:
        """Whether the time of the next tile is known."""
        return len(self.released) > self._count - self._credits

    def __iter__(self):
        return self

    def __next__(self) -> TimedTile:
        return next(self._iterator)

    def _each(self):
        # The cycles in which the sequencer decides on the first step of a panel, and on the last
        # step of the tile before; before the first tile, values that delay nothing.
        taken, last = self._start + PANEL_START - STEP, self._start - self._rows
        if self._before:
            last = self._before.computed - STEP
        pixels = 0
        for panel, rows in enumerate(self._sizes):
            # A pixel is prepared in each cycle, from the one in which the panel before was taken.
            collected = taken + rows
            first = taken = max(collected, last + 1)
            pixels += rows
            if self._before:
                first = taken = self._before.passes(
                    self._origins.number(pixels - 1) + self._span, first, collected
                )
            for number in range(self._tiles):
                end = first + self._words - 1
                last = max(end, last + self._rows, self._space())  # a tile drains in so many cycles
                if not number and self._words == 1:
                    taken = last  # its only step waits for all that
                self._count += 1
                yield TimedTile(panel, number, rows, last + STEP)
                first = last + 1

    def _space(self):
        """The first cycle in which the result buffer has space for the next tile."""
        before = self._count - self._credits
        return self.released[before] + 1 if before >= 0 else 0
