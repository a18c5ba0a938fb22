"""A relay: a board's bytes on TCP, for one client at a time, each of them on a clean line."""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from random import choice

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.board import MAX_ANSWER
from weft.host.link import Frame, FrameDecoder
from weft.host.tcp import VANISHED, Socket, address
from weft.host.transport import TransportError
from weft.registers import REGISTERS

__all__ = ["TcpServer", "listen"]

_PIECE = 1 << 12
_POLL = 0.2  # seconds after which it looks whether it was closed
_BROKEN = (OSError, ValueError)
_TRIES = 5  # questions to a board that gives no sign, each with twice the timeout
_READ = struct.Struct("<HH")
# Questions that may be on their way, at most: a pipe holds 64 KiB of 16 bytes each.
_UNDER_WAY = 1 << 12


def listen(host: str = "localhost", port: int = 0) -> socket.socket:
    """A socket that listens at ``host``, a name or an IPv4 or IPv6 address; port 0: a free one.

    Raises TransportError where that cannot be.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        families = [family for family, *_ in found]
        family = socket.AF_INET if socket.AF_INET in families else families[0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        raise TransportError(f"{address(host, port)} must be free to listen at: {error}") from error


class TcpServer:
    """Passes bytes between a byte pipe and one TCP client; refuses others until it leaves.

    A client may leave questions that the board has yet to answer, and sequence numbers of 8 bits
    repeat: the next client could take such an answer for its own. A board answers in order. So the
    relay asks it a question that no client asked, and drops what the board says until the answer;
    only then the next client is connected. What the board says while there is no client is dropped
    too.

    Parameters
    ----------
    reader, writer : binary files
        As of `weft.host.link.FramedTransport`.
    listener : socket
        As `listen` gives it.
    timeout : float
        Seconds without a frame of the board's after which it is asked again.
    say : callable
        Told, in a line, who comes and goes.

    Attributes
    ----------
    port : int
    """

    def __init__(self, reader, writer, listener, *, timeout, say=lambda text: None):
        self._reader, self._writer, self._listener, self._say = reader, writer, listener, say
        self._timeout = timeout
        self._listener.settimeout(_POLL)
        self.port = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._name = None  # of the client that has the board, or waits for a clean line
        self._client = None  # the client that gets what the board says
        self._next = None  # the client that waits for a clean line
        self._marker = None  # number and size of the answer that it waits for
        self._asked = deque(maxlen=_UNDER_WAY)  # number and size of the last answers to come
        self._decoder = FrameDecoder(MAX_ANSWER)
        self._open = True
        self._answers = threading.Thread(target=self._pass_answers, daemon=True)
        self._answers.start()

    def serve(self) -> None:
        """Accept clients until the relay is closed, or the board is gone."""
        while self._open:
            try:
                connection, peer = self._listener.accept()
            except (TimeoutError, ConnectionError):  # nobody, or somebody who left at once
                continue
            except _BROKEN:
                return
            try:
                client, name = Socket(connection), address(*peer[:2])
            except OSError:  # it left meanwhile
                connection.close()
                continue
            with self._changed:
                taken = self._name
                if taken is None:
                    self._name = name
            if taken is None:
                threading.Thread(target=self._session, args=(client, name), daemon=True).start()
            else:
                self._say(f"{name} is refused")
                text = (
                    f"{taken} has the board; if that machine vanished, the board is free again"
                    f" after {VANISHED} s"
                )
                threading.Thread(target=_refuse, args=(client, text), daemon=True).start()

    def close(self) -> None:
        """Let client and board go. Closing twice is fine."""
        with self._changed:
            self._open = False
            client = self._client
            self._changed.notify_all()
        self._listener.close()
        for end in (client, self._writer, self._reader):
            if end is not None:
                with suppress(*_BROKEN):
                    end.close()

    def _session(self, client, name):
        connected = False
        with suppress(*_BROKEN):
            connected = self._connect(client)
            if connected:
                self._say(f"{name} has the board")
                self._pass_commands(client)
        if connected:
            client.close()
        with self._changed:
            self._name = self._client = self._next = self._marker = None
        self._say(f"{name} is gone")
        if not connected:
            _refuse(client, "the board does not answer")

    def _connect(self, client):
        """Whether ``client`` has a clean line now; not where the board does not answer."""
        self._send(bytes(MAX_PAYLOAD + 16))  # ends the frame that the client before left off in
        timeout = self._timeout
        for _ in range(_TRIES):
            with self._changed:
                question, self._marker = self._question()
                self._asked.append(self._marker)
                self._next = client
            self._send(question)
            with self._changed:
                while self._open and self._client is None and self._changed.wait(timeout):
                    pass  # some frame came, of before the answer
                if self._client is None:  # the answer may be within a frame that was cut short
                    self._look(self._decoder.abandon())
                if self._client is not None or not self._open:
                    return self._open
            timeout *= 2  # a board that answers late must not be asked for ever
        return False

    def _question(self):
        """A READ that no answer under way can be of; number and size of its answer."""
        free = {
            (sequence, 4 * count) for sequence in range(256)
            for count in range(1, len(REGISTERS) + 1)
        }.difference(self._asked)
        sequence, size = choice(sorted(free))
        frame = Frame(FrameType.READ, sequence, _READ.pack(0, size // 4))
        return frame.encode(), (sequence, size)

    def _look(self, items):
        """Give the line to the client that waits, where the answer that it waits for came."""
        for item in items:
            if isinstance(item, Frame) and self._next is not None:
                self._changed.notify_all()
                found = item.sequence, len(item.payload)
                if item.type == FrameType.REGISTERS and found == self._marker:
                    self._client, self._next = self._next, None
        if self._client is not None:
            with suppress(OSError):
                self._client.write(self._decoder.rest())

    def _send(self, data):
        self._writer.write(data)
        self._writer.flush()

    def _pass_commands(self, client):
        decoder = FrameDecoder(MAX_PAYLOAD)
        while data := client.read1(_PIECE):
            for item in decoder.feed(data):
                if isinstance(item, Frame) and item.type == FrameType.READ:
                    size = 4 * int.from_bytes(item.payload[2:4], "little")
                    with self._changed:
                        self._asked.append((item.sequence, size))
            self._send(data)

    def _pass_answers(self):
        with suppress(*_BROKEN):
            while data := self._reader.read1(_PIECE):
                with self._changed:
                    client = self._client
                    if client is None:
                        self._look(self._decoder.feed(data))
                while client is not None and data:
                    try:
                        data = data[client.write(data) :]
                    except OSError:  # it left
                        break
        self.close()


def _refuse(client, text):
    with suppress(*_BROKEN):
        client.write(Frame(FrameType.ERROR, 0, text.encode()).encode())
    client.finish()
