"""The interface between a session and a network core."""

from typing import Protocol

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.report import ListReport

__all__ = ["NetworkCoreRunner"]


class NetworkCoreRunner(Protocol):
    """A network core: `weft.host.network_driver.NetworkDriver`, or a model.

    Addresses are the addresses of lists (`weft.network_core.addresses`), relative to BASE or to the
    start of the program memory.

    Methods raise `weft.host.transport.TransportError` if the connection fails.

    Attributes
    ----------
    config : NetworkCoreConfig
    program_bytes : int
        Bytes of the program memory, if the core has one. It may be smaller than the core allows.
    """

    config: NetworkCoreConfig
    program_bytes: int

    def write(
        self, address: int, data: bytes, *, run: int = 0, pitch: int = 0, pixels: int = 0,
        row_step: int = 0,
    ) -> None:
        """Write bytes to the memory.

        With ``run`` 0 the data are whole vectors that follow each other. Otherwise they are rows of
        ``pixels`` pixels of ``run`` bytes; pixels are ``pitch`` vectors apart, and ``row_step`` is
        the address step from the last pixel of a row to the next row. The rest of the last vector
        of a pixel becomes 0. Data of any length are divided into frames.
        """

    def read(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the memory, from the first one of a vector on."""

    def write_program(self, address: int, data: bytes) -> None:
        """Write whole vectors to the program memory; only if the core has one."""

    def read_program(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the program memory; only if the core has one."""

    def run(self, list_address: int, log_address: int, *, timeout: float) -> ListReport:
        """Execute a list, and wait at most ``timeout`` seconds for its end."""

    def close(self) -> None:
        """Close the connection."""
