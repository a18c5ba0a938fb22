"""Frames on a byte pipe: their codec, and the transport that speaks them."""

import struct
import threading
import time
import zlib
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

from weft.commands import Status
from weft.frames import SYNC, FrameType
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout

__all__ = ["MAX_PIPE_PAYLOAD", "Frame", "FrameDecoder", "FramedTransport", "FramingError"]

# Maximum payload in bytes: without a limit, a damaged length field could swallow all later frames.
MAX_PIPE_PAYLOAD = 1 << 24

_PIECE = 1 << 16  # bytes read or written at once
_BROKEN = (OSError, ValueError)  # what a pipe raises that broke, or was closed meanwhile
_HEADER = struct.Struct("<2sBBI")
_CRC = struct.Struct("<I")
_RESULTS = struct.Struct("<HBB")
_READ = struct.Struct("<HH")


@dataclass(frozen=True)
class Frame:
    """One frame; ``type`` is a `FrameType`, or another number from a newer peer."""

    type: int
    sequence: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """The frame as bytes on the pipe."""
        if len(self.payload) > MAX_PIPE_PAYLOAD:
            size = len(self.payload)
            raise ValueError(f"payload must be at most {MAX_PIPE_PAYLOAD} bytes, not {size}")
        body = _HEADER.pack(SYNC, self.type, self.sequence, len(self.payload)) + self.payload
        return body + _CRC.pack(zlib.crc32(body[len(SYNC) :]))


@dataclass(frozen=True)
class FramingError:
    """Bytes that were no frame, up to the next good one; ``text`` says what was wrong."""

    text: str


class FrameDecoder:
    """Bytes in, in pieces of any size; frames out. After damage it looks for the next mark.

    A frame of more than ``limit`` bytes of payload is damage.
    """

    def __init__(self, limit: int = MAX_PIPE_PAYLOAD):
        self._limit = limit
        self._buffer = bytearray()
        self._lost = False

    def abandon(self) -> list[Frame | FramingError]:
        """What ``feed`` gives where the frame under way is none: no more of it will come."""
        found = []
        if self._buffer:
            self._damage(found, "a frame must be whole, not cut short", 1)
        return found + self.feed(b"")

    def rest(self) -> bytes:
        """The bytes of the frame under way, which are forgotten here."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def feed(self, data: bytes) -> list[Frame | FramingError]:
        """The frames, and the damage between them, that ``data`` completes."""
        self._buffer += data
        found = []
        while True:
            skip = self._buffer.find(SYNC)
            if skip < 0:  # the last byte may be the first of a mark
                skip = len(self._buffer) - self._buffer.endswith(SYNC[:1])
            if skip:
                start = bytes(self._buffer[:2]).hex()
                self._damage(found, f"a frame must start with {SYNC.hex()}, not {start}", skip)
            if len(self._buffer) < _HEADER.size:
                return found
            _, kind, sequence, length = _HEADER.unpack_from(self._buffer)
            if length > self._limit:
                text = f"a frame's payload must be at most {self._limit} bytes, not {length}"
                self._damage(found, text, len(SYNC))
                continue
            end = _HEADER.size + length
            if len(self._buffer) < end + _CRC.size:
                return found
            body = bytes(self._buffer[:end])
            (stated,) = _CRC.unpack_from(self._buffer, end)
            crc = zlib.crc32(body[len(SYNC) :])
            if crc != stated:
                text = f"a frame's CRC must be 0x{crc:08x}, not 0x{stated:08x}"
                self._damage(found, text, len(SYNC))
                continue
            self._lost = False
            del self._buffer[: end + _CRC.size]
            found.append(Frame(kind, sequence, body[_HEADER.size :]))

    def _damage(self, found, text, skip):
        # What follows damage is looked at again from within, so it fails again: told once.
        del self._buffer[:skip]
        if not self._lost:
            found.append(FramingError(text))
        self._lost = True


class FramedTransport:
    """The `Transport` over a byte pipe; a base for whatever opens one.

    A thread reads and a thread writes, so that neither a full pipe nor a slow core holds the
    caller. A wait times out when for that long nothing moved either way.

    Parameters
    ----------
    reader : binary file
        Its ``read1`` (else ``read``) returns what is there, a byte or more; none at the end.
    writer : binary file
        With ``write`` and ``flush``.

    Attributes
    ----------
    sent, received : int
        Bytes that the pipe took, and gave.
    """

    fresh = True
    _LIMIT = MAX_PIPE_PAYLOAD  # of a frame that comes

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self.sent = self.received = 0
        self._changed = threading.Condition()
        self._outbox = deque()
        self._results = deque()  # packets, and in their place errors for those that were lost
        self._answers = deque()
        self._faults = deque()
        self._ended = self._closed = False
        self._moved = self._arrived = time.monotonic()  # anything; bytes from the other end
        self._sequence = 0
        self._expected = None  # the number of the next results
        self._decoder = FrameDecoder(self._LIMIT)
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._read_all, self._write_all)
        ]
        for thread in self._threads:
            thread.start()

    def explain(self) -> str:
        """Why the pipe ended, for the error's text; a subclass that knows more says more."""
        return "the other end must stay open, not close the pipe"

    def restart(self, timeout: float) -> None:
        """Nothing: a pipe loses no words."""

    def send(self, commands: bytes) -> None:
        # In as few frames as can be: within one, a simulated core never waits for the host.
        for start in range(0, len(commands), MAX_PIPE_PAYLOAD):
            self._post(FrameType.COMMANDS, bytes(commands[start : start + MAX_PIPE_PAYLOAD]))

    def receive(self, timeout: float) -> Packet:
        return self._await("results", timeout, self._take_result)

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        question = _READ.pack(address, count)
        payload = self._ask(FrameType.READ, question, FrameType.REGISTERS, timeout)
        if len(payload) != 4 * count:
            text = f"{count} registers must come as {4 * count} bytes, not {len(payload)}"
            raise TransportError(text)
        return list(struct.unpack(f"<{count}I", payload))

    def abort(self, timeout: float) -> None:
        self._ask(FrameType.ABORT, b"", FrameType.ABORTED, timeout)

    def close(self) -> None:
        """Close the writer, which tells the other end to stop; the reader closes with its end."""
        with self._changed:
            first, self._closed = not self._closed, True
            if first:
                self._outbox.append(None)
            self._changed.notify_all()
        if first:
            for thread in self._threads:
                thread.join(1)

    def _post(self, kind, payload):
        with self._changed:
            self._check_open()
            self._sequence = (self._sequence + 1) % 256
            # A wait that begins now must not count the quiet time before it.
            self._moved = time.monotonic()
            self._put(Frame(kind, self._sequence, payload))
            return self._sequence

    def _put(self, frame):
        self._outbox.append(frame.encode())
        self._changed.notify_all()

    def _ask(self, kind, payload, answer, timeout, *, strict=True):
        sequence = self._post(kind, payload)
        what = f"{answer.name} in answer to {kind.name}"
        take = partial(self._take_answer, answer, sequence)
        return self._await(what, timeout, take, strict=strict)

    def _take_answer(self, answer, sequence):
        while self._answers:  # answers to questions given up earlier go by
            frame = self._answers.popleft()
            if (frame.type, frame.sequence) == (answer, sequence):
                return frame.payload
        return None

    def _take_result(self):
        if not self._results:
            return None
        result = self._results.popleft()
        if isinstance(result, TransportError):
            raise result
        return result

    def _await(self, what, timeout, take, *, strict=True):
        """What ``take`` gives, once it is there.

        Unless ``strict``, faults are left for another wait, and what moves does not prolong it.
        """
        with self._changed:
            start = time.monotonic()
            while (item := take()) is None:
                if strict and self._faults:
                    raise TransportError(self._faults.popleft())
                self._check_open()
                since = max(start, self._moved) if strict else start
                left = since + timeout - time.monotonic()
                if left <= 0:
                    raise TransportTimeout(f"{what} must come within {timeout:g} s, not later")
                self._changed.wait(left)
            return item

    def _check_open(self):
        if self._closed:
            raise TransportClosed("the transport must be open, not closed")
        if self._ended:
            raise TransportClosed(self.explain())

    def _write_all(self):
        with suppress(*_BROKEN), closing(self._writer) as writer:
            while (frame := self._next()) is not None:
                view = memoryview(frame)
                while view:
                    done = writer.write(view[:_PIECE])
                    view = view[done:]
                    self.sent += done
                    self._stir()
                writer.flush()
        self._end()

    def _next(self):
        """The next frame to write, once there is one; None at the end."""
        with self._changed:
            while not self._outbox:
                frame, wait = self._due(time.monotonic())
                if frame is not None:
                    return frame
                self._changed.wait(wait)
            return self._outbox.popleft()

    def _due(self, now):
        """A frame besides those in the outbox, or None; and how long there will be none."""
        return None, None

    def _stir(self):
        """Bytes moved."""
        self._moved = time.monotonic()

    def _read_all(self):
        read = getattr(self._reader, "read1", self._reader.read)
        with suppress(*_BROKEN), closing(self._reader):
            while data := read(_PIECE):
                with self._changed:
                    self.received += len(data)
                    self._arrived = time.monotonic()
                    self._stir()
                    self._sort_all(self._decoder.feed(data))
        self._end()

    def _end(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _sort_all(self, items):
        for item in items:
            self._sort(item)
        self._changed.notify_all()

    def _sort(self, item):
        """Put what came where its waiter looks."""
        if isinstance(item, FramingError):
            self._faults.append(f"from the core: {item.text}")
        elif item.type in (FrameType.REGISTERS, FrameType.ABORTED):
            self._answers.append(item)
        elif item.type == FrameType.RESULTS and len(item.payload) >= _RESULTS.size:
            if self._expected is not None and item.sequence != self._expected:
                self._results.append(TransportError(
                    f"results must come in frame {self._expected}, not {item.sequence}:"
                    " frames were lost"
                ))
            tag, last, status = _RESULTS.unpack_from(item.payload)
            data = item.payload[_RESULTS.size :]
            self._results.append(Packet(tag, bool(last), Status(status), data))
            self._expected = (item.sequence + 1) % 256
        elif item.type == FrameType.ERROR:
            text = item.payload.decode(errors="replace")
            self._faults.append(f"the core refused a frame: {text}")
        else:
            kind = f"0x{item.type:02x} with {len(item.payload)} bytes"
            self._faults.append(f"a frame to the host must be of a known type, not {kind}")
