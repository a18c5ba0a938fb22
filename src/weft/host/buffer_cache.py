"""What is where in a buffer of a network core, so that nothing is loaded twice."""

__all__ = ["BufferCache"]


class BufferCache:
    """Places data in a buffer, one after the other; new data replace the oldest in their way.

    Parameters
    ----------
    size : int
        Words of the buffer.
    """

    def __init__(self, size: int):
        self._size = size
        self._next = 0
        self._places: dict[bytes, range] = {}  # by the key of the data

    def clear(self) -> None:
        """Forget all data: they must be loaded again."""
        self._places.clear()

    def place(self, key: bytes, words: int) -> tuple[int, bool]:
        """Return the first word of the data with a key, and whether they must be loaded.

        Data that are placed take ``words``, at most the size of the buffer.
        """
        if key in self._places:
            return self._places[key].start, False
        if self._next + words > self._size:
            self._next = 0
        taken = range(self._next, self._next + words)
        self._places = {
            other: place for other, place in self._places.items()
            if place.stop <= taken.start or taken.stop <= place.start
        }
        self._places[key] = taken
        self._next = taken.stop
        return taken.start, True
