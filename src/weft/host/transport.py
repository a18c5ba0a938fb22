"""What the driver asks of a transport: commands out, packets of results in, registers, abort."""

from dataclasses import dataclass
from typing import Protocol

from weft.commands import Status

__all__ = ["Packet", "Transport", "TransportClosed", "TransportError", "TransportTimeout"]


class TransportError(RuntimeError):
    """The way to the core failed; what it carried at that moment may be lost."""


class TransportTimeout(TransportError):
    """What was awaited did not come in time; the way itself may be sound."""


class TransportClosed(TransportError):
    """The way to the core is gone for good."""


@dataclass(frozen=True)
class Packet:
    """Some, or the ``last``, of the result words of a job; ``status`` counts at the last."""

    tag: int
    last: bool
    status: Status
    data: bytes


class Transport(Protocol):
    """The way to one core. Times are in seconds; a wait ends in `TransportTimeout` at the latest.

    Every method raises `TransportClosed` where the other end is gone, and may raise
    `TransportError` for a fault noticed since the call before.

    Attributes
    ----------
    fresh : bool
        Nobody has used the core before: it is at rest.
    """

    fresh: bool

    def restart(self, timeout: float) -> None:
        """Forget the words that the core's end has not taken; all that is sent from now on comes.

        The command stream then stands where it stands, be it amid a command.
        """

    def send(self, commands: bytes) -> None:
        """Queue whole words for the command stream; does not wait for the core to take them."""

    def receive(self, timeout: float) -> Packet:
        """The next packet of results."""

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """``count`` registers from ``address`` on."""

    def abort(self, timeout: float) -> None:
        """Give the core an abort pulse or more; they have been given when this returns."""

    def close(self) -> None:
        """Let go of the core. Closing twice is fine."""
