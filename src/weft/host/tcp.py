"""The transport to a board that ``weft serve`` shares over TCP."""

import socket
from contextlib import suppress

from weft.host.board import BoardTransport
from weft.host.transport import TransportError

__all__ = ["PEER_TIMEOUT", "Socket", "TcpTransport", "address"]

PEER_TIMEOUT = 60  # seconds without a sign of the other machine until the connection ends

_PROBE_TIMEOUT = 10.0  # seconds to connect, and then seconds until the first answer
_ACK_TIMEOUT = 1.0  # seconds until an unanswered frame is sent again; networks are slow
# How the system checks a silent connection. Not every system has all of these options.
_KEEPALIVE = {
    "TCP_KEEPIDLE":     PEER_TIMEOUT // 2,     # seconds of silence before the first probe
    "TCP_KEEPINTVL":    PEER_TIMEOUT // 6,     # seconds between probes
    "TCP_KEEPCNT":      3,                 # probes without an answer
    "TCP_USER_TIMEOUT": 1000 * PEER_TIMEOUT,   # milliseconds for which data may be unacknowledged
}


def address(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Socket:
    """A TCP connection as the reader and writer of a `weft.host.link.FramedTransport`.

    The connection also ends when the other machine does not respond for `PEER_TIMEOUT` seconds.
    """

    def __init__(self, connection: socket.socket):
        self._connection = connection
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def read1(self, count: int) -> bytes:
        """Return the available bytes, at least one; b"" at the end."""
        return self._connection.recv(count)

    read = read1

    def write(self, data) -> int:
        """Write some bytes of ``data``; return their number."""
        return self._connection.send(data)

    def flush(self) -> None:
        """Do nothing: written bytes are sent at once."""

    def close_gracefully(self) -> None:
        """Close after the other end has closed, or after `PEER_TIMEOUT` seconds.

        To close with unread input would reset the connection, and the other end would lose the
        bytes that it has not read yet.
        """
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(PEER_TIMEOUT)
            while self._connection.recv(1 << 12):
                pass
        self.close()

    def close(self) -> None:
        """End the connection and all waits for it. Closing twice has no effect."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class TcpTransport(BoardTransport):
    """A `Transport` to a board that ``weft serve`` shares on another machine.

    Parameters
    ----------
    host : str
        Name, IPv4 or IPv6 address of the machine.
    port : int
        TCP port.

    Raises
    ------
    TransportError
        If the connection is refused, another client uses the board, or no Weft core answers.
    """

    def __init__(self, host: str, port: int):
        name = f"tcp://{address(host, port)}"
        try:
            connection = socket.create_connection((host, port), timeout=_PROBE_TIMEOUT)
        except (OSError, UnicodeError) as error:
            text = f"cannot connect to {name}: {error}; is weft serve running?"
            raise TransportError(text) from error
        pipe = Socket(connection)
        super().__init__(pipe, pipe, name=name, timeout=_ACK_TIMEOUT)
        try:
            self.probe(_PROBE_TIMEOUT)
        except BaseException:
            self.close()
            raise
