"""A relay: a board's bytes on TCP, for one client at a time."""

import socket
import threading
from contextlib import suppress

from weft.frames import FrameType
from weft.host.link import Frame
from weft.host.tcp import Socket
from weft.host.transport import TransportError

__all__ = ["Relay"]

_PIECE = 1 << 12
_POLL = 0.2  # seconds after which it looks whether it was closed
_BROKEN = (OSError, ValueError)


class Relay:
    """Passes bytes between a byte pipe and whoever connects first; refuses others until it leaves.

    What the board says while there is no client is dropped.

    Parameters
    ----------
    reader, writer : binary files
        As of `weft.host.link.FramedTransport`.
    host : str
        The address to listen at.
    port : int
        0 for any that is free.
    say : callable
        Told, in a line, who comes and goes.

    Attributes
    ----------
    port : int
    """

    def __init__(self, reader, writer, *, host="localhost", port=0, say=lambda text: None):
        self._reader, self._writer, self._say = reader, writer, say
        try:
            self._listener = socket.create_server((host, port))
        except OSError as error:
            raise TransportError(f"{host}:{port} must be free to listen at: {error}") from error
        self._listener.settimeout(_POLL)
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._client = self._name = None
        self._open = True
        self._answers = threading.Thread(target=self._pass_answers, daemon=True)
        self._answers.start()

    def serve(self) -> None:
        """Accept clients until the relay is closed, or the board is gone."""
        while self._open:
            try:
                connection, address = self._listener.accept()
            except TimeoutError:
                continue
            except _BROKEN:
                return
            client, name = Socket(connection), f"{address[0]}:{address[1]}"
            with self._lock:
                taken = self._name
                if taken is None:
                    self._client, self._name = client, name
            if taken is None:
                self._say(f"{name} has the board")
                threading.Thread(target=self._pass_commands, daemon=True).start()
            else:
                self._say(f"{name} is refused")
                text = f"{taken} has the board"
                with suppress(*_BROKEN):
                    client.write(Frame(FrameType.ERROR, 0, text.encode()).encode())
                client.close()

    def close(self) -> None:
        """Let client and board go. Closing twice is fine."""
        self._open = False
        self._listener.close()
        with self._lock:
            client = self._client
        for end in (client, self._writer, self._reader):
            if end is not None:
                with suppress(*_BROKEN):
                    end.close()

    def _pass_commands(self):
        client, name = self._client, self._name
        with suppress(*_BROKEN):
            while data := client.read1(_PIECE):
                self._writer.write(data)
                self._writer.flush()
        client.close()
        with self._lock:
            self._client = self._name = None
        self._say(f"{name} is gone")

    def _pass_answers(self):
        with suppress(*_BROKEN):
            while data := self._reader.read1(_PIECE):
                with self._lock:
                    client = self._client
                while client is not None and data:
                    try:
                        data = data[client.write(data) :]
                    except OSError:  # it left
                        break
        self.close()
