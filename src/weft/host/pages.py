"""Who has which pages of an operand buffer: held ones, and the free ones that jobs pass through."""

__all__ = ["Pages", "Ring"]


class Pages:
    """The pages of one operand's buffer; `hold` takes some out of use until `release`."""

    def __init__(self, count: int):
        self._count = count
        self._held = {}  # first page: pages

    def gaps(self) -> list[tuple[int, int]]:
        """The free stretches, as first page and pages."""
        found, start = [], 0
        for page in (*sorted(self._held), self._count):
            if page > start:
                found.append((start, page - start))
            start = page + self._held.get(page, 0)
        return found

    def free(self) -> tuple[int, int]:
        """The longest free stretch, as first page and pages; (0, 0) where all are held."""
        return max(self.gaps(), key=lambda gap: gap[1], default=(0, 0))

    def hold(self, pages: int) -> int | None:
        """First of ``pages`` free pages, now held; None where no gap is that long."""
        fits = [(size, start) for start, size in self.gaps() if size >= pages]
        if not fits:
            return None
        # The end of the smallest gap that fits: it leaves the longest one longest.
        size, start = min(fits)
        page = start + size - pages
        self._held[page] = pages
        return page

    def release(self, page: int) -> None:
        """Give back what `hold` gave."""
        del self._held[page]


class Ring:
    """Regions one after another in a stretch of pages, and from its start again.

    Nobody gives a region back: the core makes a load wait for earlier jobs that use its pages.
    """

    def __init__(self, start: int, size: int):
        self.size = size
        self.position = 0  # where the next region starts, if it fits there
        self._start = start

    def take(self, pages: int) -> int:
        """First page of the next region."""
        if self.position + pages > self.size:
            self.position = 0
        page = self._start + self.position
        self.position += pages
        return page
