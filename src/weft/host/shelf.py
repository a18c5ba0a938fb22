"""What the driver knows to be in the core already, so that it is not sent again."""

from collections.abc import Sequence

from weft.commands import Load

__all__ = ["Shelf"]


class Shelf:
    """The panels of parameters and of the table as last loaded, byte by byte.

    Nothing but loads of these changes them. After a failure nobody knows: `clear`.
    """

    def __init__(self):
        self._panels = {}

    def lacks(self, load: Load, data: Sequence[int]) -> bool:
        """Whether ``load`` with ``data`` changes anything; from now on it counts as done."""
        size = len(data) // load.panels
        wanted = {
            (load.operand, load.page + n * load.pitch): bytes(data[n * size : (n + 1) * size])
            for n in range(load.panels)
        }
        if wanted.items() <= self._panels.items():
            return False
        self._panels |= wanted
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._panels.clear()
