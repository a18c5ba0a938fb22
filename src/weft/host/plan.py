"""The plan of a product: nested loops of steps; and which operands are in the core's buffers."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from weft.commands import Load, Region
from weft.geometry import Operand

__all__ = ["Blocks", "Pages", "Plan", "ResidencyCache", "Ring"]

class Pages:
    """The pages of one operand buffer: `allocate` reserves consecutive pages until `release`."""

    def __init__(self, count: int):
        self._count = count
        self._allocated: dict[int, int] = {}  # first page: number of pages

    def gaps(self) -> list[tuple[int, int]]:
        """Return the free ranges, each as (first page, number of pages)."""
        found, start = [], 0
        for page in (*sorted(self._allocated), self._count):
            if page > start:
                found.append((start, page - start))
            start = page + self._allocated.get(page, 0)
        return found

    def free(self) -> tuple[int, int]:
        """Return the longest free range, as in `gaps`; (0, 0) if no page is free."""
        return max(self.gaps(), key=lambda gap: gap[1], default=(0, 0))

    def allocate(self, pages: int) -> int | None:
        """Reserve ``pages`` consecutive pages; return the first, or None if no range is free."""
        fits = [(size, start) for start, size in self.gaps() if size >= pages]
        if not fits:
            return None
        # Use the end of the smallest gap that fits, so that the longest gap stays as long as it is.
        size, start = min(fits)
        page = start + size - pages
        self._allocated[page] = pages
        return page

    def release(self, page: int) -> None:
        """Free the pages that `allocate` returned."""
        del self._allocated[page]


class Ring:
    """Gives consecutive regions of a range of pages, and wraps at its end.

    Regions are not freed: the core itself delays a load until no earlier job uses its pages.
    """

    def __init__(self, start: int, size: int):
        self.size = size
        self.position = 0  # offset of the next region, if it fits there
        self._start = start

    def next_region(self, pages: int) -> int:
        """Return the first page of the next region of ``pages`` pages, at most ``size``."""
        if self.position + pages > self.size:
            self.position = 0
        page = self._start + self.position
        self.position += pages
        return page


class ResidencyCache:
    """Remembers the contents of the parameter, table and C pages.

    Only loads change these pages. After a failure their contents are unknown: call `clear`.

    Parameters
    ----------
    memories : dict of `weft.geometry.Operand`
        The buffers, by `Region`.
    """

    def __init__(self, memories: Mapping[Region, Operand]):
        self._memories = memories
        self._pages: dict = {}

    def needs(self, load: Load, data: Sequence[int]) -> bool:
        """Return whether ``load`` must be sent with ``data``; assume from now on that it was."""
        # A panel is one page, or (for C) pages of one word: no two panels share a page.
        pages = -(-load.words // self._memories[Region(load.operand)].page)
        size = len(data) // (load.panels * pages)
        addresses = (
            (load.operand, load.page + panel * load.pitch + page)
            for panel in range(load.panels) for page in range(pages)
        )
        wanted = {
            address: bytes(data[n * size : (n + 1) * size]) for n, address in enumerate(addresses)
        }
        if wanted.items() <= self._pages.items():
            return False
        self._pages |= wanted
        return True

    def clear(self) -> None:
        """Forget all contents."""
        self._pages.clear()


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
