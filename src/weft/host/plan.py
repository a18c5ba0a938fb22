"""The steps of a product as loops, of which most iterations are alike."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence

from weft.commands import Region

__all__ = ["Blocks", "Plan"]


class Blocks(Sequence):
    """So many panels, or words, as ranges of one size; the last one has the rest."""

    def __init__(self, total: int, size: int):
        self._total, self._size = total, size

    def __len__(self) -> int:
        return (self._total + self._size - 1) // self._size

    def __getitem__(self, index: int) -> range:
        start = index * self._size
        if not 0 <= start < self._total:
            raise IndexError(f"block must be in 0..{len(self) - 1}, not {index}")
        return range(start, min(start + self._size, self._total))

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The sizes of the blocks, and how many blocks have each."""
        whole, rest = divmod(self._total, self._size)
        return [(self._size, whole), (rest, 1 if rest else 0)]


class Plan:
    """The steps of a product, in order: nested loops over blocks of its operands.

    In a loop all iterations but the first and the last one are alike, as far as `key` and `limit`
    say; so what steps cost can be computed without all of them. That holds for products that start
    from no C and use no resident operand.

    Attributes
    ----------
    axes : tuple of Blocks
        For each loop, from the outermost to the innermost, its blocks: of panels, or of words of
        the panels.
    step : callable
        The `Step` of an index into each of `axes`. It must be called in order.
    nonblocking : frozenset of Region
        Operands of which no load waits for a job.
    """

    def __init__(self, axes: tuple[Blocks, ...], sides, step: Callable, planner, product):
        self.axes = axes
        self.step = step
        self.nonblocking = product.nonblocking
        self._columns = range(product.panels[Region.B])
        self._sides = sides  # the operands whose panels the axes are; None for words
        self._planner = planner
        self._finished = product.finished
        # Parameters are loaded or not by what is in this.
        self._remembers = product.finishes and Region.B not in self.nonblocking

    def __iter__(self) -> Iterator:
        for index in itertools.product(*map(range, map(len, self.axes))):
            yield self.step(*index)

    def key(self, axis: int) -> Hashable:
        """What the steps of a loop depend on beside their panels: pages and parameters.

        A loop over B passes each panel once, so parameters that it loads are not used again in it.
        """
        positions = self._planner.positions
        pages = [positions[side] for side in (Region.A, Region.B) if side not in self.nonblocking]
        remembered = self._remembers and self._sides[axis] == Region.A
        return tuple(pages), frozenset(self._finished.items()) if remembered else None

    def limit(self, axis: int, index: int) -> int:
        """How many iterations from ``index`` on find no parameters of an earlier loop over B."""
        panels, count = self.axes[axis][index], len(self.axes[axis])
        if self._remembers and self._sides[axis] == Region.B:
            loaded = [panel for panel in self._finished.values() if panel >= panels.start]
            count = (min(loaded, default=count * len(panels)) - panels.start) // len(panels)
        return count

    def rest(self, axis: int) -> int:
        """Periods at the end of a loop in which each step is needed, for later steps' sake."""
        return 1 if self._remembers and self._sides[axis] == Region.B else 0

    def restarts(self, index: tuple[int, ...]) -> bool:
        """Whether `key` says all that the steps that start with ``index`` depend on."""
        axis = len(index) - 1
        return self._sides[axis] == Region.A or self.limit(axis, index[-1]) > 0

    def save(self, index: tuple[int, ...]) -> tuple:
        """What the steps that start with ``index`` have left, for `restore`."""
        panels = self._panels(index)
        places = {
            page: panel - panels.start for page, panel in self._finished.items() if panel in panels
        }
        return self._planner.positions, places

    def restore(self, saved, index: tuple[int, ...]) -> None:
        """Go on behind the steps that start with ``index``, which left what others did."""
        first = self._panels(index).start
        self._planner.positions, places = saved
        self._finished.update({page: first + panel for page, panel in places.items()})

    def _panels(self, index):
        """The panels of B in the steps that start with ``index``."""
        axis = len(index) - 1
        if self._sides[axis] == Region.B:
            return self.axes[axis][index[-1]]
        return self._columns
