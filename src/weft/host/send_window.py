"""The window: words on their way to a board, kept until it has said that it took them."""

from collections import deque

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame

__all__ = ["SendWindow"]


class SendWindow:
    """Frames of command words, in their order, no more than `SIZE` of them without an answer.

    A board keeps the successor of the last frame it kept, and nothing else. So what it has not
    said to have is sent again, from the first such frame on: when it does not answer in time, or
    says that a frame was damaged. A ACK that tells nothing new changes nothing: it may be the
    answer to a frame that was sent twice, and to send again for that would never end.

    It knows no clock: whoever uses it says what time it is.

    Parameters
    ----------
    timeout : float
        Seconds to wait for an answer.

    Attributes
    ----------
    tries : int
        How often the first frame was sent again without a sign that the board is there.
    """

    SIZE = 2  # frames that a board has room for

    def __init__(self, timeout: float):
        self._timeout = timeout
        self.start(0)

    def start(self, number: int) -> None:
        """Forget all words; the next frame has this number."""
        self._first = number % 256  # the number of the first frame of the queue
        self._queue = deque()  # payloads of frames not known to be taken
        self._sent = 0  # of them, how many are on their way
        self._reached = 0  # and how many were ever: the board may have them
        self._deadline = None
        self.tries = 0

    def add(self, commands: bytes) -> None:
        """Queue words."""
        view = memoryview(bytes(commands))
        self._queue.extend(view[n : n + MAX_PAYLOAD] for n in range(0, len(view), MAX_PAYLOAD))

    def next(self, now: float) -> bytes | None:
        """A frame that is to be sent now."""
        if self._deadline is not None and now >= self._deadline:
            self.back()
        if self._sent == min(self.SIZE, len(self._queue)):
            return None
        number = (self._first + self._sent) % 256
        payload = bytes(self._queue[self._sent])
        self._sent += 1
        self._reached = max(self._reached, self._sent)
        self._deadline = now + self._timeout
        return Frame(FrameType.COMMANDS, number, payload).encode()

    def wait(self, now: float) -> float | None:
        """Seconds until there may be a frame to send though nothing else happens."""
        return None if self._deadline is None else max(0.0, self._deadline - now)

    def taken(self, number: int, now: float) -> bool:
        """The board has kept all frames up to this one; whether that is news."""
        count = (number - self._first + 1) % 256
        if not 1 <= count <= self._reached:
            return False
        for _ in range(count):
            self._queue.popleft()
        self._first = (number + 1) % 256
        self._sent = max(0, self._sent - count)
        self._reached -= count
        self._deadline = now + self._timeout if self._sent else None
        self.tries = 0
        return True

    def back(self) -> None:
        """Send again what is on its way."""
        if self._sent:
            self.tries += 1
        self._sent = 0
        self._deadline = None
