"""The plan of a product: nested loops of steps, of which most iterations are alike."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence

from weft.commands import Region

__all__ = ["Blocks", "Plan"]


class Blocks(Sequence):
    """Splits ``total`` panels or words into ranges of ``size``; the last range may be shorter."""

    def __init__(self, total: int, size: int):
        self._total, self._size = total, size

    def __len__(self) -> int:
        return (self._total + self._size - 1) // self._size

    def __getitem__(self, index):
        start = index * self._size
        if not 0 <= start < self._total:
            raise IndexError(f"block must be in 0..{len(self) - 1}, not {index}")
        return range(start, min(start + self._size, self._total))

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """List of (size, number of blocks with this size)."""
        whole, rest = divmod(self._total, self._size)
        return [(self._size, whole), (rest, 1 if rest else 0)]


class Plan:
    """The steps of a product in order: nested loops over blocks of its operands.

    All iterations of a loop except the first and the last are alike, within the limits that `key`
    and `limit` give. So the cost of the steps can be computed from a few of them. This holds for
    products without a C and without resident operands.

    Attributes
    ----------
    axes : tuple of Blocks
        The blocks of each loop, from the outermost to the innermost: blocks of panels, or of words
        of the panels.
    step : callable
        ``step(*index)`` returns the `PlanStep` at an index into each of ``axes``. Calls must be in
        order.
    nonblocking : frozenset of Region
        Operands whose loads never wait for a job.
    """

    def __init__(self, axes: tuple[Blocks, ...], sides, step: Callable, planner, product):
        self.axes = axes
        self.step = step
        self.nonblocking = product.nonblocking
        self._columns = range(product.panels[Region.B])
        self._sides = sides  # operand of each axis; None for an axis of words
        self._planner = planner
        self._parameter_panels = product.parameter_panels
        # Whether parameter_panels decides if a step loads parameters.
        self._tracks_parameters = product.has_parameters and Region.B not in self.nonblocking

    def __iter__(self) -> Iterator:
        for index in itertools.product(*map(range, map(len, self.axes))):
            yield self.step(*index)

    def key(self, axis: int) -> Hashable:
        """Return the values that the steps of a loop depend on, besides panels: pages, parameters.

        A loop over B visits each panel once, so it does not reuse the parameters that it loads.
        """
        positions = self._planner.positions
        pages = [positions[side] for side in (Region.A, Region.B) if side not in self.nonblocking]
        tracked = self._tracks_parameters and self._sides[axis] == Region.A
        return tuple(pages), frozenset(self._parameter_panels.items()) if tracked else None

    def limit(self, axis: int, index: int) -> int:
        """Return how many iterations from ``index`` on reuse no parameters of an earlier loop."""
        panels, count = self.axes[axis][index], len(self.axes[axis])
        if self._tracks_parameters and self._sides[axis] == Region.B:
            loaded = [panel for panel in self._parameter_panels.values() if panel >= panels.start]
            count = (min(loaded, default=count * len(panels)) - panels.start) // len(panels)
        return count

    def rest(self, axis: int) -> int:
        """Return the periods at the end of a loop that later steps depend on: never skip them."""
        return 1 if self._tracks_parameters and self._sides[axis] == Region.B else 0

    def restarts(self, index: tuple[int, ...]) -> bool:
        """Return whether the steps that start with ``index`` depend only on `key`."""
        axis = len(index) - 1
        return self._sides[axis] == Region.A or self.limit(axis, index[-1]) > 0

    def save(self, index: tuple[int, ...]) -> tuple:
        """Return the state after the steps that start with ``index``, for `restore`."""
        panels = self._panels(index)
        offsets = {
            page: panel - panels.start
            for page, panel in self._parameter_panels.items() if panel in panels
        }
        return self._planner.positions, offsets

    def restore(self, saved, index: tuple[int, ...]) -> None:
        """Continue after the steps that start with ``index``, with the state of equal steps."""
        first = self._panels(index).start
        self._planner.positions, offsets = saved
        self._parameter_panels.update({page: first + panel for page, panel in offsets.items()})

    def _panels(self, index):
        """Return the panels of B in the steps that start with ``index``."""
        axis = len(index) - 1
        if self._sides[axis] == Region.B:
            return self.axes[axis][index[-1]]
        return self._columns
