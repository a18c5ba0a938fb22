"""A board behind a TCP connection, as ``weft serve`` gives it."""

import socket
from contextlib import suppress

from weft.host.board import BoardTransport
from weft.host.transport import TransportError

__all__ = ["Socket", "TcpTransport"]

_ANSWER = 10.0  # seconds within which there is a connection, and then an answer
_PATIENCE = 1.0  # seconds after which what was not answered is sent again: networks are slow


class Socket:
    """The bytes of a connection: both files of a `weft.host.link.FramedTransport`."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read1(self, count: int) -> bytes:
        """What is there, a byte or more; nothing at the end."""
        return self._connection.recv(count)

    read = read1

    def write(self, data) -> int:
        """Write some of it; how much."""
        return self._connection.send(data)

    def flush(self) -> None:
        """Nothing: what is written goes out."""

    def close(self) -> None:
        """End the connection, and whoever waits for it. Closing twice is fine."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class TcpTransport(BoardTransport):
    """The `Transport` to a board that ``weft serve`` has on another machine.

    Parameters
    ----------
    host : str
    port : int

    Raises
    ------
    TransportError
        Where nobody listens, another client has the board, or no Weft core answers.
    """

    def __init__(self, host: str, port: int):
        name = f"tcp://{host}:{port}"
        try:
            connection = socket.create_connection((host, port), timeout=_ANSWER)
        except OSError as error:
            raise TransportError(f"{name} must be where weft serve listens: {error}") from error
        both = Socket(connection)
        super().__init__(both, both, name=name, patience=_PATIENCE)
        try:
            self.greet(_ANSWER)
        except BaseException:
            self.close()
            raise
