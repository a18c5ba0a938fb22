"""What the driver knows to be in the core already, so that it is not sent again."""

from collections.abc import Mapping, Sequence

from weft.commands import Load, Region
from weft.geometry import Operand

__all__ = ["ResidencyCache"]


class ResidencyCache:
    """The pages of parameters, of the table and of C as last loaded, byte by byte.

    Nothing but loads of these changes them. After a failure nobody knows: `clear`.

    Parameters
    ----------
    memories : dict of `weft.geometry.Operand`
        Of all that can be loaded.
    """

    def __init__(self, memories: Mapping[Region, Operand]):
        self._memories = memories
        self._pages = {}

    def needs(self, load: Load, data: Sequence[int]) -> bool:
        """Whether ``load`` with ``data`` changes anything; from now on it counts as done."""
        # Panels take a page, or (C) pages of a word: so each page has bytes of its own.
        pages = -(-load.words // self._memories[load.operand].page)
        size = len(data) // (load.panels * pages)
        places = (
            (load.operand, load.page + panel * load.pitch + page)
            for panel in range(load.panels) for page in range(pages)
        )
        wanted = {
            place: bytes(data[n * size : (n + 1) * size]) for n, place in enumerate(places)
        }
        if wanted.items() <= self._pages.items():
            return False
        self._pages |= wanted
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._pages.clear()
