"""Recovery: a core that failed, or that another client left, comes to rest."""

import time
from collections.abc import Callable

from weft.commands import HEADER_BYTES, Job, Load, Status
from weft.config import Config
from weft.geometry import memories
from weft.host.transport import Transport, TransportClosed, TransportError, TransportTimeout

__all__ = ["AcceleratorError", "padded", "resync"]

_QUIET = 0.05  # seconds without results after which another abort is given
_SEARCH_DELAY = 0.5  # seconds after which the command stream is taken to stand amid a command


class AcceleratorError(RuntimeError):
    """The core is not what it should be, or did not do what it was asked to."""


def padded(command: Job | Load, config: Config) -> bytes:
    """The words of a header."""
    return command.pack().ljust(config.bytes_in, b"\0")


def resync(
    transport: Transport, config: Config, barrier: Callable[[], Job], timeout: float
) -> None:
    """End whatever the core still has to do, drop its results, and find where a header may come.

    An empty job, the barrier, is sent; aborts end those before it that wait for what will never
    come; its answer is the last one of before. No answer may mean that the stream stands amid a
    command: then zeros that end any load, and barriers in every place that a header can have. The
    one that is answered says where headers are; zeros lead up to the next, that of a last barrier.

    Parameters
    ----------
    transport, config
        A core and the way to it.
    barrier : callable
        Gives a job of nothing, with a new tag.
    timeout : float
        Seconds, at most.

    Raises
    ------
    AcceleratorError
        Where it does not come to rest.
    """
    start = time.monotonic()
    transport.restart(timeout)
    stream = _Stream(transport, config, barrier)
    stream.send(0)
    lost = time.monotonic() + _SEARCH_DELAY
    quiet = True
    while True:
        try:
            if quiet:
                transport.abort(timeout)
            if lost is not None and time.monotonic() > lost:
                stream.search()
                lost = None
            quiet = False
            packet = transport.receive(min(_QUIET, timeout))
            if packet.last and packet.status == Status.REJECTED and stream.answered(packet.tag):
                return
        except TransportClosed:
            raise
        except TransportError as error:
            if time.monotonic() > start + timeout:
                raise AcceleratorError(
                    f"the core must come to rest within {timeout:g} s of an abort, "
                    "not stay at work: it must be reset"
                ) from error
            quiet = isinstance(error, TransportTimeout)


class _Stream:
    """Barriers on the command stream, each at a known distance from the others."""

    def __init__(self, transport, config, barrier):
        self._transport, self._config, self._barrier = transport, config, barrier
        self._header = max(HEADER_BYTES, config.bytes_in)
        self._sent = 0
        self._ends = {}  # how much was sent up to the end of each barrier, by its tag
        self._aligned = False

    def send(self, zeros):
        """So many bytes of 0, then a barrier."""
        self._transport.send(self._bytes(zeros))

    def search(self):
        """Zeros that end any load, and the command it may be in; barriers in every place."""
        longest = max(
            o.pages * -(-o.page // o.group) * o.segments * o.stream
            for o in memories(self._config).values()
        )
        step = self._config.bytes_in
        sent = [self._bytes(longest + self._header)]
        sent += [self._bytes(step) for _ in range(step, self._header, step)]
        self._transport.send(b"".join(sent))

    def answered(self, tag):
        """Whether this was the answer to the last that was sent."""
        end = self._ends.get(tag)
        if end is not None and end != self._sent and not self._aligned:
            self._aligned = True
            self.send(-(self._sent - end) % self._header)
        return end == self._sent

    def _bytes(self, zeros):
        job = self._barrier()
        self._sent += zeros + self._header
        self._ends[job.tag] = self._sent
        return bytes(zeros) + padded(job, self._config)
