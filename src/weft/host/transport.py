"""Commands for a core, as words where a wire begins, and the interface of all transports."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from weft.commands import Job, Load, Status
from weft.config import Config

__all__ = [
    "Command", "Commands", "Packet", "Transport", "TransportBusy", "TransportClosed",
    "TransportError", "TransportTimeout",
]


# A header, and the payload of a load. Without a header: words that are no command. The core skips
# them, unless a load was cut off before them, which they complete; see `weft.host.recovery`.
Command = tuple[Job | Load | None, bytes | bytearray | memoryview]


class Commands:
    """Commands in order; iterate to get each `Command`.

    Parameters
    ----------
    config : Config
        Of the core that gets them.
    commands : iterable of Command
    """

    def __init__(self, config: Config, commands: Iterable[Command]):
        self._config = config
        self._commands = list(commands)

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands)

    def encode(self) -> bytes:
        """Return the words of the command stream, for a wire."""
        size = self._config.bytes_in
        parts: list = []
        for header, data in self._commands:
            if header is not None:
                parts.append(header.pack().ljust(size, b"\0"))
            parts.append(data)
        return b"".join(parts)


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
