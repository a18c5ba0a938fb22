"""Commands for a core: typed for every transport, and words where a wire begins."""

from collections.abc import Iterable, Iterator

from weft.commands import Job, Load
from weft.config import Config

__all__ = ["Command", "Commands"]

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
