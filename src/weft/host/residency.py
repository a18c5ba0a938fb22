"""The contents of the core's buffers: pages of operands, and what need not be sent again."""

from collections.abc import Mapping, Sequence

from weft.commands import Load, Region
from weft.geometry import Operand

__all__ = ["Pages", "ResidencyCache", "Ring"]


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
