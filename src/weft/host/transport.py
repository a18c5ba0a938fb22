"""The interface between the driver and a core: commands, results, registers and abort."""

from dataclasses import dataclass
from typing import Protocol

from weft.commands import Status
from weft.host.wire import Commands

__all__ = [
    "Packet", "Transport", "TransportBusy", "TransportClosed", "TransportError", "TransportTimeout",
]


class TransportError(RuntimeError):
    """The connection to the core failed; data in transit may be lost."""


class TransportTimeout(TransportError):
    """An answer did not arrive in time; the connection itself may still work."""


class TransportClosed(TransportError):
    """The connection to the core is closed and cannot be used again."""


class TransportBusy(TransportClosed):
    """Another program uses the core."""


@dataclass(frozen=True)
class Packet:
    """Result words of one job.

    Attributes
    ----------
    tag : int
        Tag of the job.
    last : bool
        Whether these are the job's last words.
    status : Status
        Status of the job; valid if ``last``.
    data : bytes
        The words.
    """

    tag: int
    last: bool
    status: Status
    data: bytes


class Transport(Protocol):
    """A connection to one core. All times are in seconds.

    Every method raises `TransportClosed` if the other end is gone, and may raise `TransportError`
    for an error noticed since the previous call. A method with a ``timeout`` raises
    `TransportTimeout` if no answer arrives in that time.

    Attributes
    ----------
    fresh : bool
        Whether the core has not been used before, and so is idle.
    """

    fresh: bool

    def restart(self, timeout: float) -> None:
        """Discard what the core has not accepted; commands sent later arrive complete.

        The command stream of a wire stays where it is, possibly in the middle of a command.
        """

    def send(self, commands: Commands) -> None:
        """Queue commands for the core; does not wait until the core accepts them."""

    def receive(self, timeout: float) -> Packet:
        """Return the next packet of results."""

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` registers, starting at word ``address``."""

    def abort(self, timeout: float) -> None:
        """Send one or more abort pulses to the core; return when they have been given."""

    def close(self) -> None:
        """Release the core. Closing twice has no effect."""
