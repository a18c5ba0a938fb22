"""The side port of the memory in the cycle model of lists: reads of several clients."""

from collections import deque
from collections.abc import Sequence

from weft.network_core.latencies import DELIVERY, SIDE_READ, WRITE

__all__ = ["SidePortTimes", "first_request"]


def first_request(requests: Sequence[int | None]) -> int | None:
    """Return the first client with a request, or None. A loop: it runs in each cycle."""
    for client, request in enumerate(requests):
        if request is not None:
            return client
    return None


class SidePortTimes:
    """Skid buffer, memory and the reads in flight, cycle by cycle.

    Parameters
    ----------
    config : NetworkCoreConfig
    """

    def __init__(self, config):
        self._banks, self._vectors = config.banks, config.read_vectors
        self._latency = SIDE_READ + DELIVERY
        self._ready = True  # of the skid buffer
        self._output: tuple[int, int] | None = None  # client and bank
        self._skid: tuple[int, int] | None = None
        self._in_flight: deque[tuple[int, int]] = deque()  # cycle of the arrival, client
        # Banks of the writes that the memory has not seen.
        self._written: deque[int | None] = deque([None] * (WRITE + 1))

    def arrival(self, now: int) -> int | None:
        """The client whose data arrive in this cycle."""
        if self._in_flight and self._in_flight[0][0] == now:
            return self._in_flight.popleft()[1]
        return None

    def step(self, now: int, requests, written: int | None) -> int | None:
        """A cycle.

        Parameters
        ----------
        now : int
        requests : sequence of int or None
            The vector that each client wants to read, or one in its bank, by priority.
        written : int or None
            The bank that a client of the write arbiter writes.

        Returns
        -------
        int or None
            The client whose read is accepted.
        """
        accepted = first_request(requests) if self._ready else None
        self._written.append(written)
        blocked = self._written.popleft()
        advance = self._output is None
        if self._output is not None:
            client, bank = self._output
            if self._accepts(bank, blocked):
                self._in_flight.append((now + self._latency, client))
                advance = True
        incoming = None if accepted is None else (accepted, requests[accepted] % self._banks)
        self._ready = advance or (self._skid is None and incoming is None)
        if advance:
            self._output, self._skid = (self._skid or incoming), None
        elif incoming:
            self._skid = incoming
        return accepted

    def _accepts(self, bank, blocked):
        """Whether the memory accepts a read; ``blocked`` was written `WRITE` + 1 cycles before."""
        return blocked is None or (blocked - bank) % self._banks >= self._vectors

    @property
    def idle(self) -> bool:
        """No read is under way."""
        return self._output is None and not self._in_flight
