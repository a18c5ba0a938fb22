"""A board behind a TCP connection, as ``weft serve`` gives it."""

import socket
from contextlib import suppress

from weft.host.board import BoardTransport
from weft.host.transport import TransportError

__all__ = ["VANISHED", "Socket", "TcpTransport", "address"]

VANISHED = 60  # seconds after which the other machine, if it gives no sign, is taken to be gone

_PROBE_TIMEOUT = 10.0  # seconds within which there is a connection, and then an answer
_ACK_TIMEOUT = 1.0  # seconds after which what was not answered is sent again: networks are slow
# How the system probes a silent connection. Not every system has all of these options.
_WATCH = {
    "TCP_KEEPIDLE":     VANISHED // 2,     # seconds of silence before the first probe
    "TCP_KEEPINTVL":    VANISHED // 6,     # seconds between probes
    "TCP_KEEPCNT":      3,                 # probes without an answer
    "TCP_USER_TIMEOUT": 1000 * VANISHED,   # milliseconds for which data may be unacknowledged
}


def address(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Socket:
    """The bytes of a connection: both files of a `weft.host.link.FramedTransport`.

    The connection also ends when the other machine gives no sign for `VANISHED` seconds.
    """

    def __init__(self, connection: socket.socket):
        self._connection = connection
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _WATCH.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def read1(self, count: int) -> bytes:
        """What is there, a byte or more; nothing at the end."""
        return self._connection.recv(count)

    read = read1

    def write(self, data) -> int:
        """Write some of it; how much."""
        return self._connection.send(data)

    def flush(self) -> None:
        """Nothing: what is written goes out."""

    def finish(self) -> None:
        """Close once the other end has, or after `VANISHED` seconds: it can read what was written.

        To close at once would reset the connection where the other end has written too, and what
        it has not read yet would be lost.
        """
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(VANISHED)
            while self._connection.recv(1 << 12):
                pass
        self.close()

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
        name = f"tcp://{address(host, port)}"
        try:
            connection = socket.create_connection((host, port), timeout=_PROBE_TIMEOUT)
        except (OSError, UnicodeError) as error:
            raise TransportError(f"{name} must be where weft serve listens: {error}") from error
        both = Socket(connection)
        super().__init__(both, both, name=name, timeout=_ACK_TIMEOUT)
        try:
            self.probe(_PROBE_TIMEOUT)
        except BaseException:
            self.close()
            raise
