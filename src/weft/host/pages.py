"""Page allocation in an operand buffer: allocated pages, and a ring over free ones for jobs."""

__all__ = ["Pages", "Ring"]


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
