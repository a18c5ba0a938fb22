"""The array in the cycle model of lists: when each tile of a job is computed."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.latencies import STEP
from weft.network_core.latencies import PANEL_START, result_rows

__all__ = ["TileTimes", "TimedTile", "panel_sizes"]


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

    Attributes
    ----------
    released : list of int
        For each tile, the cycle of the request of its last chunk. The output stage appends them.
    """

    def __init__(self, config, job, start: int):
        self._rows = config.array.rows
        self._tiles = -(-job.columns // config.array.cols)
        self._words = job.tile_words
        self._credits = result_rows(config) // config.array.rows
        self._start = start
        self._sizes = panel_sizes(job)
        self._count = 0
        self.released: list[int] = []
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
        for panel, rows in enumerate(self._sizes):
            # A pixel is prepared in each cycle, from the one in which the panel before was taken.
            first = taken = max(taken + rows, last + 1)
            for number in range(self._tiles):
                end = first + self._words - 1
                last = max(end, last + self._rows, self._space())  # a tile drains in `rows` cycles
                self._count += 1
                yield TimedTile(panel, number, rows, last + STEP)
                first = last + 1

    def _space(self):
        """The first cycle in which the result buffer has space for the next tile."""
        before = self._count - self._credits
        return self.released[before] + 1 if before >= 0 else 0
