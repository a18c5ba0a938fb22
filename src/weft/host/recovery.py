"""Recovery: brings a core to a known idle state after a failure or another client."""

import time
from collections.abc import Callable

from weft.commands import HEADER_BYTES, Job, Status
from weft.config import Config
from weft.geometry import memories
from weft.host.transport import (
    Commands,
    Transport,
    TransportClosed,
    TransportError,
    TransportTimeout,
)

__all__ = ["AcceleratorError", "resync"]

_ABORT_INTERVAL = 0.05  # seconds without results until the next abort
_SEARCH_DELAY = 0.5  # seconds until the command stream is assumed to be inside a command


class AcceleratorError(RuntimeError):
    """The core has an unexpected Config, or did not execute a command as specified."""


def resync(
    transport: Transport, config: Config, barrier: Callable[[], Job], timeout: float
) -> None:
    """End all pending jobs, drop their results, and align the command stream to a header.

    Sends an empty job, the barrier. Aborts end the earlier jobs that wait for operands. The answer
    to the barrier follows all earlier answers. If it does not arrive, the command stream may be
    inside a command. Then zeros complete the longest possible load, and barriers follow at every
    position that a header can have. The barrier that is answered shows the alignment; zeros lead to
    the next header position, where a last barrier confirms it.

    Parameters
    ----------
    transport : Transport
    config : Config
        Config of the core.
    barrier : callable
        Returns an empty job with a new tag.
    timeout : float
        Maximum duration in seconds.

    Raises
    ------
    AcceleratorError
        If the core is still busy after ``timeout``.
    """
    start = time.monotonic()
    transport.restart(timeout)
    stream = _Stream(transport, config, barrier)
    stream.send(0)
    search_time: float | None = time.monotonic() + _SEARCH_DELAY
    abort = True
    while True:
        try:
            if abort:
                transport.abort(timeout)
            if search_time is not None and time.monotonic() > search_time:
                stream.search()
                search_time = None
            abort = False
            packet = transport.receive(min(_ABORT_INTERVAL, timeout))
            rejected = packet.last and packet.status == Status.REJECTED
            if rejected and stream.is_aligned(packet.tag):
                return
        except TransportClosed:
            raise
        except TransportError as error:
            if time.monotonic() > start + timeout:
                raise AcceleratorError(
                    f"the core is still busy {timeout:g} s after an abort; reset the core"
                ) from error
            abort = isinstance(error, TransportTimeout)


class _Stream:
    """Sends barriers and records the position of each in the command stream."""

    def __init__(self, transport, config, barrier):
        self._transport, self._config, self._barrier = transport, config, barrier
        self._header = max(HEADER_BYTES, config.bytes_in)
        self._sent = 0
        self._ends = {}  # tag of each barrier: bytes sent up to its end
        self._aligned = False

    def send(self, zeros):
        """Send ``zeros`` bytes of 0, then a barrier."""
        self._transport.send(Commands(self._config, self._barriers([zeros])))

    def search(self):
        """Send zeros that complete any load, then barriers at every position of a header."""
        longest = max(
            o.pages * -(-o.page // o.group) * o.segments * o.stream
            for o in memories(self._config).values()
        )
        step = self._config.bytes_in
        zeros = [longest + self._header, *[step for _ in range(step, self._header, step)]]
        self._transport.send(Commands(self._config, self._barriers(zeros)))

    def is_aligned(self, tag):
        """Return whether the answered barrier is the last one sent.

        The first answer to another barrier shows the alignment: a last barrier is sent there.
        """
        end = self._ends.get(tag)
        if end is not None and end != self._sent and not self._aligned:
            self._aligned = True
            self.send(-(self._sent - end) % self._header)
        return end == self._sent

    def _barriers(self, gaps):
        """Yield a barrier after each of ``gaps`` bytes of 0."""
        for zeros in gaps:
            job = self._barrier()
            self._sent += zeros + self._header
            self._ends[job.tag] = self._sent
            if zeros:
                yield None, bytes(zeros)
            yield job, b""
