"""Frames on a byte pipe: the codec, the transport that uses it, and the frames in transit."""

import struct
import threading
import time
import zlib
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

from weft.commands import Status
from weft.frames import MAX_PAYLOAD, SYNC, FrameType
from weft.host.transport import Commands, Packet, TransportClosed, TransportError, TransportTimeout

__all__ = [
    "MAX_PIPE_PAYLOAD", "Frame", "FrameDecoder", "FramedTransport", "FramingError", "SendWindow",
]


# Maximum payload in bytes: without a limit, a damaged length field could swallow all later frames.
MAX_PIPE_PAYLOAD = 1 << 24

_CHUNK = 1 << 16  # maximum bytes per read or write
_PIPE_ERRORS = (OSError, ValueError)  # raised by a pipe that broke or was closed meanwhile
_HEADER = struct.Struct("<2sBBI")
_CRC = struct.Struct("<I")
_RESULTS = struct.Struct("<HBB")
_READ = struct.Struct("<HH")


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes
    ----------
    type : int
        A `FrameType`, or an unknown number from a newer peer.
    sequence : int
        Sequence number, 0..255.
    payload : bytes
    """

    type: int
    sequence: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the frame; ValueError if the payload is too long."""
        if len(self.payload) > MAX_PIPE_PAYLOAD:
            size = len(self.payload)
            raise ValueError(f"payload must be at most {MAX_PIPE_PAYLOAD} bytes, not {size}")
        body = _HEADER.pack(SYNC, self.type, self.sequence, len(self.payload)) + self.payload
        return body + _CRC.pack(zlib.crc32(body[len(SYNC) :]))


@dataclass(frozen=True)
class FramingError:
    """Invalid bytes before the next valid frame; ``text`` describes the first error."""

    text: str


class FrameDecoder:
    """Splits a byte sequence into frames. After an error it searches for the next SYNC.

    Parameters
    ----------
    limit : int
        Maximum payload of a frame, in bytes; a longer one is an error.
    """

    def __init__(self, limit: int = MAX_PIPE_PAYLOAD):
        self._limit = limit
        self._buffer = bytearray()
        self._in_error = False

    def drop_partial(self) -> list[Frame | FramingError]:
        """Give up the incomplete frame; return its error and the frames found in its bytes."""
        items: list[Frame | FramingError] = []
        if self._buffer:
            self._report(items, "incomplete frame: its last bytes did not arrive", 1)
        return items + self.feed(b"")

    def take_partial(self) -> bytes:
        """Remove and return the bytes of the incomplete frame."""
        partial_frame = bytes(self._buffer)
        self._buffer.clear()
        return partial_frame

    def feed(self, data: bytes) -> list[Frame | FramingError]:
        """Add ``data``; return the frames that it completes, and the errors between them."""
        self._buffer += data
        items: list[Frame | FramingError] = []
        while True:
            skip = self._buffer.find(SYNC)
            if skip < 0:  # the last byte may be the first byte of SYNC
                skip = len(self._buffer) - self._buffer.endswith(SYNC[:1])
            if skip:
                start = bytes(self._buffer[:2]).hex()
                self._report(items, f"a frame must start with {SYNC.hex()}, not {start}", skip)
            if len(self._buffer) < _HEADER.size:
                return items
            _, frame_type, sequence, length = _HEADER.unpack_from(self._buffer)
            if length > self._limit:
                text = f"a frame's payload must be at most {self._limit} bytes, not {length}"
                self._report(items, text, len(SYNC))
                continue
            end = _HEADER.size + length
            if len(self._buffer) < end + _CRC.size:
                return items
            body = bytes(self._buffer[:end])
            (received_crc,) = _CRC.unpack_from(self._buffer, end)
            crc = zlib.crc32(body[len(SYNC) :])
            if crc != received_crc:
                text = f"a frame's CRC must be 0x{crc:08x}, not 0x{received_crc:08x}"
                self._report(items, text, len(SYNC))
                continue
            self._in_error = False
            del self._buffer[: end + _CRC.size]
            items.append(Frame(frame_type, sequence, body[_HEADER.size :]))

    def _report(self, items, text, skip):
        """Skip bytes; report the error, unless one was reported since the last valid frame."""
        # The bytes of a damaged frame are searched again, so one error causes others.
        del self._buffer[:skip]
        if not self._in_error:
            items.append(FramingError(text))
        self._in_error = True


class FramedTransport:
    """A `Transport` over a byte pipe; base class of the transports that open one.

    One thread reads and one thread writes. So a full pipe or a slow core never blocks the caller.
    A wait times out when no byte has moved in either direction for the given time.

    Parameters
    ----------
    reader : binary file
        Its ``read1`` (or ``read``) returns the available bytes, at least one; b"" at the end.
    writer : binary file
        With ``write`` and ``flush``.

    Attributes
    ----------
    sent, received : int
        Bytes written to and read from the pipe.
    """

    fresh = True
    _MAX_RECEIVED = MAX_PIPE_PAYLOAD  # maximum payload of a received frame, in bytes

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self.sent = self.received = 0
        self._condition = threading.Condition()
        self._outbox = deque()
        self._results = deque()  # packets, and an error in place of each gap
        self._answers = deque()
        self._errors = deque()
        self._eof = self._closed = False
        self._last_progress = self._last_received = time.monotonic()
        self._sequence = 0
        self._next_result = None  # expected sequence number of the next results
        self._decoder = FrameDecoder(self._MAX_RECEIVED)
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._read_all, self._write_all)
        ]
        for thread in self._threads:
            thread.start()

    def _end_error(self):
        return TransportClosed(self.explain())

    def explain(self) -> str:
        """Return the reason why the pipe ended, for error messages; subclasses know more."""
        return "the other end closed the pipe unexpectedly"

    def restart(self, timeout: float) -> None:
        """Do nothing: a pipe loses no words."""

    def send(self, commands: Commands) -> None:
        self.send_words(commands.encode())

    def send_words(self, words: bytes) -> None:
        """Queue words of the command stream."""
        # As few frames as possible: a simulated core never waits for the host within a frame.
        for start in range(0, len(words), MAX_PIPE_PAYLOAD):
            self._post(FrameType.COMMANDS, bytes(words[start : start + MAX_PIPE_PAYLOAD]))

    def receive(self, timeout: float) -> Packet:
        return self._wait_for("results", timeout, self._pop_result)

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        payload = _READ.pack(address, count)
        payload = self._request(FrameType.READ, payload, FrameType.REGISTERS, timeout)
        if len(payload) != 4 * count:
            text = f"expected {4 * count} bytes for {count} registers, received {len(payload)}"
            raise TransportError(text)
        return list(struct.unpack(f"<{count}I", payload))

    def abort(self, timeout: float) -> None:
        self._request(FrameType.ABORT, b"", FrameType.ABORTED, timeout)

    def close(self) -> None:
        """Close the writer, so that the other end stops; the reader closes when that end does."""
        with self._condition:
            first, self._closed = not self._closed, True
            if first:
                self._outbox.append(None)
            self._condition.notify_all()
        if first:
            for thread in self._threads:
                thread.join(1)

    def _post(self, frame_type, payload):
        """Queue a frame with a new sequence number; return the number."""
        with self._condition:
            self._check_open()
            self._sequence = (self._sequence + 1) % 256
            # A wait that starts now must not count the idle time before it.
            self._last_progress = time.monotonic()
            self._queue_frame(Frame(frame_type, self._sequence, payload))
            return self._sequence

    def _queue_frame(self, frame):
        self._outbox.append(frame.encode())
        self._condition.notify_all()

    def _request(self, frame_type, payload, answer_type, timeout, *, strict=True):
        """Send a frame; return the payload of its answer."""
        sequence = self._post(frame_type, payload)
        what = f"{answer_type.name} in answer to {frame_type.name}"
        poll = partial(self._pop_answer, answer_type, sequence)
        return self._wait_for(what, timeout, poll, strict=strict)

    def _pop_answer(self, answer_type, sequence):
        while self._answers:  # skips late answers to earlier requests
            frame = self._answers.popleft()
            if (frame.type, frame.sequence) == (answer_type, sequence):
                return frame.payload
        return None

    def _pop_result(self):
        if not self._results:
            return None
        result = self._results.popleft()
        if isinstance(result, TransportError):
            raise result
        return result

    def _wait_for(self, what, timeout, poll, *, strict=True):
        """Wait until ``poll()`` returns something other than None, and return it.

        If ``strict``, errors are raised, and bytes that move prolong the wait.
        """
        with self._condition:
            start = time.monotonic()
            while (item := poll()) is None:
                if strict and self._errors:
                    raise TransportError(self._errors.popleft())
                self._check_open()
                since = max(start, self._last_progress) if strict else start
                left = since + timeout - time.monotonic()
                if left <= 0:
                    raise TransportTimeout(f"no {what} within {timeout:g} s")
                self._condition.wait(left)
            return item

    def _check_open(self):
        if self._closed:
            raise TransportClosed("the transport is closed")
        if self._eof:
            raise self._end_error()

    def _write_all(self):
        with suppress(*_PIPE_ERRORS), closing(self._writer) as writer:
            while (frame := self._next_frame()) is not None:
                view = memoryview(frame)
                while view:
                    count = writer.write(view[:_CHUNK])
                    view = view[count:]
                    self.sent += count
                    self._bytes_moved()
                writer.flush()
        self._set_eof()

    def _next_frame(self):
        """Wait for the next frame to write; None when the transport is closed."""
        with self._condition:
            while not self._outbox:
                frame, wait = self._poll_frame(time.monotonic())
                if frame is not None:
                    return frame
                self._condition.wait(wait)
            return self._outbox.popleft()

    def _poll_frame(self, now):
        """Return a frame to send besides the outbox, or None; and the seconds until the next."""
        return None, None

    def _bytes_moved(self):
        self._last_progress = time.monotonic()

    def _read_all(self):
        read = getattr(self._reader, "read1", self._reader.read)
        with suppress(*_PIPE_ERRORS), closing(self._reader):
            while data := read(_CHUNK):
                with self._condition:
                    self.received += len(data)
                    self._last_received = time.monotonic()
                    self._bytes_moved()
                    self._dispatch_all(self._decoder.feed(data))
        self._set_eof()

    def _set_eof(self):
        with self._condition:
            self._eof = True
            self._condition.notify_all()

    def _dispatch_all(self, items):
        for item in items:
            self._dispatch(item)
        self._condition.notify_all()

    def _dispatch(self, item):
        """Put a received frame or error into the queue of its waiter."""
        if isinstance(item, FramingError):
            self._errors.append(f"invalid data from the core: {item.text}")
        elif item.type in (FrameType.REGISTERS, FrameType.ABORTED, FrameType.DATA):
            self._answers.append(item)
        elif item.type == FrameType.RESULTS and len(item.payload) >= _RESULTS.size:
            if self._next_result is not None and item.sequence != self._next_result:
                self._results.append(TransportError(
                    f"result frames were lost: expected number {self._next_result},"
                    f" received {item.sequence}"
                ))
            tag, last, status = _RESULTS.unpack_from(item.payload)
            data = item.payload[_RESULTS.size :]
            self._results.append(Packet(tag, bool(last), Status(status), data))
            self._next_result = (item.sequence + 1) % 256
        elif item.type == FrameType.ERROR:
            text = item.payload.decode(errors="replace")
            self._errors.append(f"the core rejected a frame: {text}")
        else:
            size = len(item.payload)
            self._errors.append(
                f"unexpected frame from the core: type 0x{item.type:02x}, {size} bytes"
            )


class SendWindow:
    """Frames in order; at most `SIZE` of them are unacknowledged (go-back-N).

    A board accepts only the frame that follows the last frame it accepted. So when an
    acknowledgement is late, or the board reports a damaged frame, all frames from the first
    unacknowledged one are sent again.

    Duplicate acknowledgements are ignored: they may answer a frame that was sent twice, and a
    retransmission for each of them would never end.

    The window does not read a clock: the caller passes the current time in seconds.

    Parameters
    ----------
    timeout : float
        Seconds to wait for an acknowledgement before retransmission.

    Attributes
    ----------
    retries : int
        Consecutive retransmissions of the first frame without an answer from the board.
    """

    SIZE = 2  # frames that fit into a board's FIFO

    def __init__(self, timeout: float):
        self._timeout = timeout
        self.start(0)

    def start(self, number: int) -> None:
        """Discard all frames; the next one gets sequence number ``number`` modulo 256."""
        self._first = number % 256  # sequence number of the first frame of the queue
        # Types and payloads of the frames that are not acknowledged.
        self._queue: deque[tuple[FrameType, memoryview]] = deque()
        self._sent = 0  # frames of the queue in transit
        self._max_sent = 0  # frames of the queue that were sent at least once
        self._deadline: float | None = None
        self.retries = 0

    @property
    def empty(self) -> bool:
        """Whether all frames are acknowledged."""
        return not self._queue

    def add(self, commands: bytes) -> None:
        """Append words to the queue, as COMMANDS frames."""
        view = memoryview(bytes(commands))
        for n in range(0, len(view), MAX_PAYLOAD):
            self.append(FrameType.COMMANDS, view[n : n + MAX_PAYLOAD])

    def append(self, frame_type: FrameType, payload: bytes | memoryview) -> int:
        """Append a frame to the queue; return its sequence number."""
        self._queue.append((frame_type, memoryview(payload)))
        return (self._first + len(self._queue) - 1) % 256

    def next_frame(self, now: float) -> bytes | None:
        """Return the next encoded frame to send at time ``now``, or None."""
        if self._deadline is not None and now >= self._deadline:
            self.go_back()
        if self._sent == min(self.SIZE, len(self._queue)):
            return None
        number = (self._first + self._sent) % 256
        frame_type, payload = self._queue[self._sent]
        self._sent += 1
        self._max_sent = max(self._max_sent, self._sent)
        self._deadline = now + self._timeout
        return Frame(frame_type, number, bytes(payload)).encode()

    def time_left(self, now: float) -> float | None:
        """Return the seconds until the next retransmission, or None if no frame is in transit."""
        return None if self._deadline is None else max(0.0, self._deadline - now)

    def acknowledge(self, number: int, now: float) -> bool:
        """Remove all frames up to sequence number ``number``; False for a duplicate."""
        count = (number - self._first + 1) % 256
        if not 1 <= count <= self._max_sent:
            return False
        for _ in range(count):
            self._queue.popleft()
        self._first = (number + 1) % 256
        self._sent = max(0, self._sent - count)
        self._max_sent -= count
        self._deadline = now + self._timeout if self._sent else None
        self.retries = 0
        return True

    def go_back(self) -> None:
        """Send the frames in transit again."""
        if self._sent:
            self.retries += 1
        self._sent = 0
        self._deadline = None
