"""A cache of the contents of the core's buffers: equal data is not sent again."""

from collections.abc import Mapping, Sequence

from weft.commands import Load, Region
from weft.geometry import Operand

__all__ = ["ResidencyCache"]


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
