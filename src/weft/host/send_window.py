"""The send window: frames in transit to a board, kept until they are acknowledged."""

from collections import deque

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame

__all__ = ["SendWindow"]


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
