"""A part of a memory that a program and a core share, as a memory of its own."""

__all__ = ["MemoryArea"]


class MemoryArea:
    """``size`` bytes of ``memory`` from ``offset`` on; closing it has no effect.

    Attributes
    ----------
    address : int
        On the bus of the core. A test may change it.
    offset, size : int
    """

    def __init__(self, memory, offset, size):
        self._memory, self.offset, self.size = memory, offset, size
        self.address = offset

    def read(self, offset, size):
        assert 0 <= offset <= offset + size <= self.size
        return bytes(self._memory.read(self.offset + offset, size))

    def write(self, offset, data):
        assert 0 <= offset <= offset + len(data) <= self.size
        self._memory.write(self.offset + offset, data)

    def close(self):
        pass
