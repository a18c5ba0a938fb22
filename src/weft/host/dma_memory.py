"""Memory that the driver shares with a core with DMA."""

from typing import Protocol

from weft.host.mmio import map_file

__all__ = ["DmaMemory", "MappedMemory"]


class DmaMemory(Protocol):
    """Memory that the core and this program both access.

    Attributes
    ----------
    address : int
        Address of its first byte on the bus of the core.
    size : int
        Bytes.
    """

    address: int
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``offset`` on."""

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes; the core reads them if it is told to do so afterwards."""

    def close(self) -> None:
        """Release the memory. Closing twice has no effect."""


class MappedMemory:
    """Memory in a file that maps it: ``/dev/udmabuf0``, ``/dev/mem``, or a map of a UIO device.

    Parameters
    ----------
    path : str
        The file.
    address : int
        Address of the memory on the bus of the core.
    size : int
        Bytes.
    offset : int
        Position of the memory in the file, a multiple of the page size: ``address`` in
        ``/dev/mem``, ``n * mmap.PAGESIZE`` for map n of a UIO device.

    Raises
    ------
    ValueError
        If ``offset`` is not a multiple of the page size, or ``size`` is not 1 or more.
    TransportError
        If the file cannot be opened or mapped.
    """

    def __init__(self, path: str, address: int, size: int, offset: int = 0):
        if size < 1:
            raise ValueError(f"size must be 1 or more, not {size}")
        self.address, self.size = address, size
        self._map = map_file(path, size, offset)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``offset`` on."""
        return self._map[offset : offset + size]

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes."""
        self._map[offset : offset + len(data)] = data

    def close(self) -> None:
        """Unmap the memory."""
        self._map.close()
