"""The link to a board: frames that it has room for, each sent until it has been taken."""

import time
from collections import deque
from random import randrange

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame, FramedTransport, FramingError
from weft.host.send_window import SendWindow
from weft.host.transport import TransportError, TransportTimeout

__all__ = ["MAX_ANSWER", "BoardTransport"]

MAX_ANSWER = 1024  # of payload, more than a board sends at once

_TRIES = 20  # how often a frame is sent again to a board that gives no sign
_AGREED = 3  # answers in a row that say what was sent: more than can be late
_STRANGE = b"type", b"size"  # what a board says of a frame that it does not know


class BoardTransport(FramedTransport):
    """The `Transport` to a board over pipes that lose bytes and turn bits.

    Commands go through a `SendWindow`; questions, which may be asked again without harm, are asked
    until they are answered. Results that were lost are not sent again: they are an error, and what
    was sent until then is forgotten by `restart`, which must come before the first `send` too.

    A wait for results times out when for that long nothing came of what was sent: no frame was
    taken, no question answered, no results came.

    Parameters
    ----------
    reader, writer : binary files
        As of `FramedTransport`.
    name : str
        What leads to the board, for errors.
    timeout : float
        Seconds after which something that was not answered is sent again: more than a frame and
        its answer take.
    """

    fresh = False
    _LIMIT = MAX_ANSWER

    def __init__(self, reader, writer, *, name: str = "the pipe", timeout: float = 0.25):
        self.name = name
        self._timeout = timeout
        self._window = SendWindow(timeout)
        self._placed = False  # whether the window goes on where the board is
        self._heard = deque()  # numbers of ACK, where it does not
        self._refusal = None
        super().__init__(reader, writer)
        with self._changed:
            self._sequence = randrange(256)  # there may be answers to another client on the way
            # Whatever frame another client left off in: this is the end of it, and no frame.
            self._outbox.append(bytes(MAX_PAYLOAD + 16))
            self._changed.notify_all()

    def explain(self) -> str:
        if self._refusal:
            return f"{self.name} refused the connection: {self._refusal}"
        return f"{self.name} must stay connected, not come to its end"

    def probe(self, timeout: float) -> None:
        """Make sure that a board of Weft's answers; TransportTimeout where none does."""
        try:
            self.read(0, 1, timeout)
        except TransportTimeout as error:
            came = f"{self.received} bytes that are no answer" if self.received else "none"
            raise TransportTimeout(
                f"{self.name} must lead to a board with a Weft core that answers within"
                f" {timeout:g} s, not to something that gives {came}"
            ) from error

    def restart(self, timeout: float) -> None:
        """Forget the words not taken, and find the number that the board expects.

        It answers an empty frame with the last number it kept, and keeps the frame if its number
        is the next. An abort comes first: what is on the way ends with it, but for two answers.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._lose_place()
        self.abort(timeout)
        with self._changed:
            for queue in (self._heard, self._results, self._faults):
                queue.clear()
        number, agreed = randrange(256), -1  # whatever is said to the first is no agreement
        while agreed < _AGREED:
            if time.monotonic() > deadline:
                raise TransportTimeout(
                    f"the board must say within {timeout:g} s which frame it took last,"
                    " not leave it open"
                )
            heard = self._exchange_empty(number, agreed < 0)
            if heard is None:
                self.abort(timeout)  # there may be no room for as long as a job waits
                continue
            agreed = agreed + 1 if agreed >= 0 and heard == number else 0
            number = (heard + 1) % 256
        with self._changed:
            self._window.start(number)
            self._placed = True

    def _exchange_empty(self, number, first):
        """The number that an empty frame is answered with, be it the ``first``, or the one sent.

        Where that does not come, the last that came; None for none.
        """
        heard = deque(maxlen=1)

        def take():
            while self._heard:
                heard.append(self._heard.popleft())
                if first or heard[0] == number:
                    return heard[0]
            return None

        with self._changed:
            self._check_open()
            self._put(Frame(FrameType.COMMANDS, number))
        try:
            return self._await("ACK", self._timeout, take, strict=False)
        except TransportTimeout:
            return heard[0] if heard else None

    def send(self, commands: bytes) -> None:
        with self._changed:
            self._check_open()
            if not self._placed:
                raise TransportError("the link must be restarted before it takes commands")
            self._window.add(commands)
            self._moved = time.monotonic()
            self._changed.notify_all()

    def _ask(self, kind, payload, answer, timeout):
        deadline = time.monotonic() + timeout
        while True:
            left = min(self._timeout, deadline - time.monotonic())
            try:
                return super()._ask(kind, payload, answer, left, strict=False)
            except TransportTimeout:
                if time.monotonic() >= deadline:
                    raise TransportTimeout(
                        f"{answer.name} in answer to {kind.name} must come within {timeout:g} s,"
                        " not later"
                    ) from None
                with self._changed:
                    self._abandon(time.monotonic())

    def _due(self, now):
        if not self._placed:
            return None, None
        frame = self._window.next(now)
        if self._window.tries > _TRIES:
            self._lose_place()
            self._faults.append(
                f"the board must take a frame of {_TRIES} that are the same, not miss them all"
            )
            self._changed.notify_all()
            return None, None
        if self._window.tries:
            self._abandon(now)
        return frame, self._window.wait(now)

    def _lose_place(self):
        self._placed = False
        self._window.start(0)

    def _abandon(self, now):
        """Look for frames in what came, where no more of it comes."""
        if now - self._arrived >= self._timeout:
            self._sort_all(self._decoder.abandon())

    def _stir(self):
        """Bytes alone are no progress: a board that refuses for ever sends some too."""

    def _sort(self, item):
        now = time.monotonic()
        if isinstance(item, FramingError):
            super()._sort(item)
        elif item.type == FrameType.ACK:
            if not self._placed:
                self._heard.append(item.sequence)
            elif self._window.taken(item.sequence, now):
                self._moved = now
        elif item.type == FrameType.ERROR and item.payload == b"CRC ":
            self._window.back()
        elif item.type == FrameType.ERROR and item.payload == b"room":
            self._window.tries = 0
        else:
            if item.type == FrameType.ERROR and item.payload not in _STRANGE:
                self._refusal = item.payload.decode(errors="replace")
            self._moved = now
            super()._sort(item)
