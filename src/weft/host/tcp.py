"""A board shared over TCP: the transport of a client, and the server of ``weft serve``."""

import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from random import choice

from weft.frames import MAX_WRITE, FrameType
from weft.host.board import BUSY, MAX_ANSWER, BoardTransport
from weft.host.link import Frame, FrameDecoder
from weft.host.transport import TransportError
from weft.registers import REGISTERS

__all__ = ["PEER_TIMEOUT", "Socket", "TcpServer", "TcpTransport", "address", "listen"]


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


_CHUNK = 1 << 12  # maximum bytes per read
_POLL = 0.2  # seconds between two checks whether the server was closed
_PIPE_ERRORS = (OSError, ValueError)
_MAX_TRIES = 5  # fence requests to a board that does not answer, each with twice the timeout
_READ = struct.Struct("<HH")
# Maximum number of unanswered READs: a pipe holds 64 KiB, and a READ is 16 bytes.
_MAX_PENDING = 1 << 12


def listen(host: str = "localhost", port: int = 0) -> socket.socket:
    """Return a socket that listens at ``host``: a name, an IPv4 or an IPv6 address.

    Port 0 means any free port. Raises TransportError if the address is invalid or in use.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        families = [family for family, *_ in found]
        family = socket.AF_INET if socket.AF_INET in families else families[0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        raise TransportError(f"cannot listen at {address(host, port)}: {error}") from error


class TcpServer:
    """Passes bytes between a byte pipe and one TCP client; rejects others until it leaves.

    A client may leave READs that the board has not answered yet. Sequence numbers have 8 bits, so
    the next client could take such an answer for its own. A board answers in order. So before each
    client the server sends a READ of its own, the fence, which differs from all pending READs. It
    drops the bytes from the board until the answer to the fence, and then connects the client. It
    also drops bytes from the board while no client is connected.

    The systems of both machines keep bytes that a client has sent before it closed: some megabytes,
    which may take minutes on a serial line. So a client leaves, too, when the board has got its
    bytes for `PEER_TIMEOUT` seconds and answered nothing. A driver waits for answers.

    Parameters
    ----------
    reader, writer : binary files
        The board, as in `weft.host.link.FramedTransport`.
    listener : socket
        From `listen`.
    timeout : float
        Seconds without a frame from the board until the fence is sent again.
    say : callable
        Called with one line of text when a client connects, is rejected or leaves.

    Attributes
    ----------
    port : int
        TCP port on which the server listens.
    """

    def __init__(self, reader, writer, listener, *, timeout, say=lambda text: None):
        self._reader, self._writer, self._listener, self._say = reader, writer, listener, say
        self._timeout = timeout
        self._listener.settimeout(_POLL)
        self.port = self._listener.getsockname()[1]
        self._condition = threading.Condition()
        self._owner = None  # name of the client that uses the board, or waits for the fence
        self._client = None  # client that gets the bytes from the board
        self._next_client = None  # client that waits for the fence
        self._fence = None  # sequence number and size of the answer to the fence
        self._pending = deque(maxlen=_MAX_PENDING)  # the same of the latest READs
        self._decoder = FrameDecoder(MAX_ANSWER)
        self._unanswered = None  # when the board got the first byte since its last answer
        self._open = True
        self._thread = threading.Thread(target=self._pass_answers, daemon=True)
        self._thread.start()

    def serve(self) -> None:
        """Accept clients until the server is closed or the board is disconnected."""
        while self._open:
            try:
                connection, peer = self._listener.accept()
            except (TimeoutError, ConnectionError):  # no client, or one that left at once
                continue
            except _PIPE_ERRORS:
                return
            try:
                client, name = Socket(connection), address(*peer[:2])
            except OSError:  # the client left meanwhile
                connection.close()
                continue
            with self._condition:
                owner = self._owner
                if owner is None:
                    self._owner = name
            if owner is None:
                threading.Thread(target=self._session, args=(client, name), daemon=True).start()
            else:
                self._say(f"{name} is rejected")
                text = (
                    f"{owner} {BUSY}; if that machine is gone, the board is free again"
                    f" after {PEER_TIMEOUT} s"
                )
                threading.Thread(target=_reject, args=(client, text), daemon=True).start()

    def close(self) -> None:
        """Disconnect client and board. Closing twice has no effect."""
        with self._condition:
            self._open = False
            client = self._client
            self._condition.notify_all()
        self._listener.close()
        for end in (client, self._writer, self._reader):
            if end is not None:
                with suppress(*_PIPE_ERRORS):
                    end.close()

    def _session(self, client, name):
        connected = False
        with suppress(*_PIPE_ERRORS):
            connected = self._connect(client)
            if connected:
                self._say(f"{name} is connected")
                self._pass_commands(client)
        if connected:
            client.close()
        with self._condition:
            self._owner = self._client = self._next_client = self._fence = None
            self._unanswered = None
        self._say(f"{name} is disconnected")
        if not connected:
            _reject(client, "the board does not answer")

    def _connect(self, client):
        """Connect ``client`` after the fence; False if the board does not answer it."""
        # Completes, as an invalid frame, a frame that the client before left unfinished.
        self._send(bytes(MAX_WRITE + 16))
        timeout = self._timeout
        for _ in range(_MAX_TRIES):
            with self._condition:
                request, self._fence = self._new_fence()
                self._pending.append(self._fence)
                self._next_client = client
            self._send(request)
            with self._condition:
                while self._open and self._client is None and self._condition.wait(timeout):
                    pass  # an earlier frame arrived
                if self._client is None:  # the answer may be inside an incomplete frame
                    self._check_fence(self._decoder.drop_partial())
                if self._client is not None or not self._open:
                    return self._open
            timeout *= 2  # a slow board must not get requests faster than it answers
        return False

    def _new_fence(self):
        """Return a READ that no pending answer can match, and the number and size of its answer."""
        free = {
            (sequence, 4 * count) for sequence in range(256)
            for count in range(1, len(REGISTERS) + 1)
        }.difference(self._pending)
        sequence, size = choice(sorted(free))
        frame = Frame(FrameType.READ, sequence, _READ.pack(0, size // 4))
        return frame.encode(), (sequence, size)

    def _check_fence(self, items):
        """Connect the waiting client if the answer to the fence is among ``items``."""
        for item in items:
            if isinstance(item, Frame) and self._next_client is not None:
                self._condition.notify_all()
                found = item.sequence, len(item.payload)
                if item.type == FrameType.REGISTERS and found == self._fence:
                    self._client, self._next_client = self._next_client, None
        if self._client is not None:
            with suppress(OSError):
                self._client.write(self._decoder.take_partial())

    def _send(self, data):
        self._writer.write(data)
        self._writer.flush()

    def _pass_commands(self, client):
        decoder = FrameDecoder(MAX_WRITE)
        while data := client.read1(_CHUNK):
            for item in decoder.feed(data):
                if isinstance(item, Frame) and item.type == FrameType.READ:
                    size = 4 * int.from_bytes(item.payload[2:4], "little")
                    with self._condition:
                        self._pending.append((item.sequence, size))
            now = time.monotonic()
            with self._condition:
                since = now if self._unanswered is None else self._unanswered
                self._unanswered = since
            if now - since > PEER_TIMEOUT:
                return
            self._send(data)

    def _pass_answers(self):
        with suppress(*_PIPE_ERRORS):
            while data := self._reader.read1(_CHUNK):
                with self._condition:
                    client, self._unanswered = self._client, None
                    if client is None:
                        self._check_fence(self._decoder.feed(data))
                while client is not None and data:
                    try:
                        data = data[client.write(data) :]
                    except OSError:  # the client left
                        break
        self.close()


def _reject(client, text):
    with suppress(*_PIPE_ERRORS):
        client.write(Frame(FrameType.ERROR, 0, text.encode()).encode())
    client.close_gracefully()
