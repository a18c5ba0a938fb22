"""The transport to a board: frames that fit its buffer, repeated until they are acknowledged."""

import time
from collections import deque
from contextlib import contextmanager
from functools import partial
from random import randrange

from weft.design import PRODUCT
from weft.frames import MAX_DATA, MAX_WRITE, FrameType
from weft.host.link import Frame, FramedTransport, FramingError, SendWindow
from weft.host.network_frames import NetworkFrames
from weft.host.transport import TransportBusy, TransportError, TransportTimeout
from weft.registers import IDENTITY, kind_of

__all__ = ["BUSY", "MAX_ANSWER", "BoardTransport"]

BUSY = "uses the board"  # in the text with which a server refuses a further client
MAX_ANSWER = 8 + MAX_DATA  # bytes: no payload of a frame from a board is longer

_MAX_RETRIES = 20  # retransmissions of a frame to a board that does not answer
_MATCHES = 3  # consecutive ACKs with the number that was sent: more than can be late
_BUSY = FrameType.ERROR, b"busy"  # error of a board that cannot start a list
_UNKNOWN = b"type", b"size"  # errors that a board reports for a frame that it does not know


class BoardTransport(NetworkFrames, FramedTransport):
    """A `Transport` to a board over pipes that may lose bytes or change bits.

    It is a `weft.host.network_frames.NetworkTransport`, too, for a board with a network core.

    Commands go through a `SendWindow`. READ and ABORT requests can be repeated without harm, and
    are repeated until they are answered. Lost results are not sent again: they are an error, and
    `restart` must discard the pending commands. `restart` must also precede the first `send`.

    All answers of a network core can be asked for again, so damaged frames from it are ignored.

    A wait for results times out when no frame was acknowledged, no request was answered and no
    results arrived for the given time.

    Parameters
    ----------
    reader, writer : binary files
        As in `FramedTransport`.
    name : str
        Name of the connection, for error messages.
    timeout : float
        Seconds until an unanswered frame is sent again; must be longer than a frame and its answer
        take.
    """

    fresh = False
    _MAX_RECEIVED = MAX_ANSWER

    def __init__(self, reader, writer, *, name: str = "the pipe", timeout: float = 0.25):
        self.name = name
        self._timeout = timeout
        self._window = SendWindow(timeout)
        self._synchronized = False  # whether the window starts at the number the board expects
        self._acks: deque[int] = deque()  # numbers of ACK frames received while not synchronized
        self._empty = FrameType.COMMANDS  # type of the frames that find the sequence number
        self._lists: deque[Frame] = deque()  # DONE frames, and ERROR frames instead of them
        self._rejection = None
        super().__init__(reader, writer)
        with self._condition:
            self._sequence = randrange(256)  # answers to another client may still be in transit
            # Completes, as an invalid frame, a frame that another client left unfinished.
            self._outbox.append(bytes(MAX_WRITE + 16))
            self._condition.notify_all()

    def explain(self) -> str:
        if self._rejection:
            return f"{self.name} refused the connection: {self._rejection}"
        return f"{self.name} was disconnected"

    def _end_error(self):
        busy = self._rejection and BUSY in self._rejection
        return TransportBusy(self.explain()) if busy else super()._end_error()

    def probe(self, timeout: float) -> None:
        """Check that a board with a Weft core answers; TransportTimeout if none does."""
        try:
            self.read(0, 1, timeout)
        except TransportTimeout as error:
            count = f"{self.received} other bytes" if self.received else "nothing"
            raise TransportTimeout(
                f"no answer from a Weft core at {self.name} within {timeout:g} s,"
                f" received {count}; is the board connected and loaded?"
            ) from error

    def kind_of_core(self, timeout: float) -> str:
        """Return the kind of the core: `PRODUCT` or `NETWORK` of `weft.design`."""
        try:
            return kind_of(self.read(0, len(IDENTITY), timeout))
        except ValueError:
            return PRODUCT  # a session refuses the core, with the reason

    def restart(self, timeout: float) -> None:
        """Discard the unacknowledged words and find the sequence number that the board expects."""
        self._restart(timeout, FrameType.COMMANDS)

    def restart_lists(self, timeout: float) -> None:
        """Do the same with a network core, and end its running list."""
        self._restart(timeout, FrameType.WRITE)

    def _restart(self, timeout, empty):
        """Restart with frames of type ``empty``, which have no effect without a payload.

        The board answers an empty frame with the number of the last frame it accepted, and accepts
        the frame if its number is the next one. An abort comes first: after its answer, at most
        two earlier answers are still in transit.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            self._desynchronize()
            self._empty = empty
        self.abort(timeout)
        with self._condition:
            for queue in (self._acks, self._results, self._errors, self._lists):
                queue.clear()
        number, matches = randrange(256), -1  # the first answer never counts as a match
        while matches < _MATCHES:
            if time.monotonic() > deadline:
                raise TransportTimeout(
                    f"no agreement with the board on a sequence number within {timeout:g} s;"
                    " is the connection reliable?"
                )
            ack = self._send_empty(number, matches < 0)
            if ack is None:
                self.abort(timeout)  # while a job waits, the board may have no space for a frame
                continue
            matches = matches + 1 if matches >= 0 and ack == number else 0
            number = (ack + 1) % 256
        with self._condition:
            self._window.start(number)
            self._synchronized = True

    def _send_empty(self, number, first):
        """Send an empty frame; wait for an ACK with its ``number``, or any ACK if ``first``.

        Returns the number of this ACK. Without one: the number of the last ACK received, or None.
        """
        last_ack = deque(maxlen=1)

        def poll():
            while self._acks:
                last_ack.append(self._acks.popleft())
                if first or last_ack[0] == number:
                    return last_ack[0]
            return None

        with self._condition:
            self._check_open()
            self._queue_frame(Frame(self._empty, number))
        try:
            return self._wait_for("ACK", self._timeout, poll, strict=False)
        except TransportTimeout:
            return last_ack[0] if last_ack else None

    def send_words(self, words: bytes) -> None:
        with self._sending() as window:
            window.add(words)

    def post(self, frame_type: FrameType, payload: bytes) -> int:
        """Queue a frame that the board acknowledges; return its sequence number."""
        with self._sending() as window:
            return window.append(frame_type, payload)

    def flush(self, timeout: float) -> None:
        """Wait until the board has acknowledged all frames."""
        def poll():
            return self._synchronized and self._window.empty or None

        self._wait_for("ACK", timeout, poll)

    def receive_list(self, number: int) -> Frame | None:
        """Return the answer to the START frame with this sequence number: DONE, or an ERROR.

        Returns None if it does not arrive within the time of a retransmission.
        """
        try:
            return self._wait_for("DONE", self._timeout, partial(self._pop_list, number))
        except TransportTimeout:
            return None

    def request(
        self, frame_type: FrameType, payload: bytes, answer_type: FrameType, timeout: float
    ) -> bytes:
        """Send a frame that can be repeated without harm; return the payload of its answer."""
        return self._request(frame_type, payload, answer_type, timeout)

    @contextmanager
    def _sending(self):
        """Context with the window, to queue frames."""
        with self._condition:
            self._check_open()
            if not self._synchronized:
                raise TransportError("no commands can be sent before restart() was called")
            yield self._window
            self._last_progress = time.monotonic()
            self._condition.notify_all()

    def _pop_list(self, number):
        while self._lists:  # skips late answers to earlier lists
            if (frame := self._lists.popleft()).sequence == number:
                return frame
        return None

    def _request(self, frame_type, payload, answer_type, timeout):
        deadline = time.monotonic() + timeout
        while True:
            left = min(self._timeout, deadline - time.monotonic())
            try:
                return super()._request(frame_type, payload, answer_type, left, strict=False)
            except TransportTimeout:
                if time.monotonic() >= deadline:
                    raise TransportTimeout(
                        f"no {answer_type.name} in answer to {frame_type.name} within {timeout:g} s"
                    ) from None
                with self._condition:
                    self._drop_partial(time.monotonic())

    def _poll_frame(self, now):
        if not self._synchronized:
            return None, None
        frame = self._window.next_frame(now)
        if self._window.retries > _MAX_RETRIES:
            self._desynchronize()
            self._errors.append(
                f"no acknowledgement after {_MAX_RETRIES} retransmissions;"
                " is the board still connected?"
            )
            self._condition.notify_all()
            return None, None
        if self._window.retries:
            self._drop_partial(now)
        return frame, self._window.time_left(now)

    def _desynchronize(self):
        self._synchronized = False
        self._window.start(0)

    def _drop_partial(self, now):
        """Give up an incomplete frame if no byte of it has arrived for the timeout."""
        if now - self._last_received >= self._timeout:
            self._dispatch_all(self._decoder.drop_partial())

    def _bytes_moved(self):
        """Do nothing: bytes alone are no progress, since a board that only rejects sends some."""

    def _dispatch(self, item):
        now = time.monotonic()
        if isinstance(item, FramingError):
            if self._empty == FrameType.COMMANDS:
                super()._dispatch(item)
        elif item.type == FrameType.ACK:
            if not self._synchronized:
                self._acks.append(item.sequence)
            elif self._window.acknowledge(item.sequence, now):
                self._last_progress = now
        elif item.type == FrameType.DONE or (item.type, item.payload) == _BUSY:
            self._lists.append(item)
            self._last_progress = now
        elif item.type == FrameType.ERROR and item.payload == b"CRC ":
            self._window.go_back()
        elif item.type == FrameType.ERROR and item.payload == b"room":
            self._window.retries = 0
        else:
            if item.type == FrameType.ERROR and item.payload not in _UNKNOWN:
                self._rejection = item.payload.decode(errors="replace")
            self._last_progress = now
            super()._dispatch(item)
