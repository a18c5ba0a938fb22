"""The memories in the cycle model of lists: the side port, and bursts of the program memory."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from weft.network_core.cycles.sdram import SdramRows, SdramTimes
from weft.network_core.latencies import DELIVERY, PROGRAM_BEATS, SIDE_READ, WRITE
from weft.sdram import SdramChip

__all__ = ["ACCESS", "BURST", "ProgramPortTimes", "ProgramTiming", "SidePortTimes", "first_request"]


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
        self._written: deque[tuple[int | None, ...]] = deque([()] * (WRITE + 1))

    def arrival(self, now: int) -> int | None:
        """The client whose data arrive in this cycle."""
        if self._in_flight and self._in_flight[0][0] == now:
            return self._in_flight.popleft()[1]
        return None

    def step(
        self, now: int, requests, written: int | None, second: int | None = None
    ) -> int | None:
        """A cycle.

        Parameters
        ----------
        now : int
        requests : sequence of int or None
            The vector that each client wants to read, or one in its bank, by priority.
        written : int or None
            The bank that a client of the write arbiter writes.
        second : int, optional
            Another bank that is written in the same cycle.

        Returns
        -------
        int or None
            The client whose read is accepted.
        """
        accepted = first_request(requests) if self._ready else None
        self._written.append((written, second))
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
        return all(
            each is None or (each - bank) % self._banks >= self._vectors for each in blocked
        )

    @property
    def idle(self) -> bool:
        """No read is under way."""
        return self._output is None and not self._in_flight


BURST = 16  # beats, aligned
PERIOD = 256  # of a memory with a beat in each cycle
STORE = 3  # cycles of a store, beside the latency of the memory
SDRAM_BURSTS = 3  # of reads inside the controller of an SDRAM
ACCESS = 4  # cycles of the latency of an SDRAM until the first access of a burst
ADDRESS = 6  # cycles of the latency of an SDRAM until the last access of a burst has started
FIFO_WORDS = PROGRAM_BEATS - 2  # of beats, beside the 2 that leave


@dataclass(frozen=True)
class ProgramTiming:
    """A memory behind AXI4. It accepts the address of a burst in each cycle.

    Attributes
    ----------
    latency : int
        Cycles from the address of a burst to its first beat, and from a written beat to its
        response; at least 1.
    period : int
        Cycles from beat to beat, times 256; at least 256.
    first_beat : int
        PROGRAM_BASE in beats: it decides where bursts end.
    ahead : bool
        The memory reads ahead: a beat that waits for the core delays no other. Without this, a
        beat is read when the core has taken the one before.
    bursts : int
        Only with ``ahead``: bursts that it accepts before the first one of them has almost all of
        its beats; 0 for any number.
    rows : SdramRows, optional
        The memory is an SDRAM. ``latency`` is of a burst in an open row, and ``period`` has the
        part of refreshes; lists are predicted with ``rows`` instead.
    """

    latency: int = 32
    period: int = PERIOD
    first_beat: int = 0
    ahead: bool = False
    bursts: int = 0
    rows: SdramRows | None = None

    def __post_init__(self):
        for name, least in (
            ("latency", 1), ("period", PERIOD), ("first_beat", 0), ("bursts", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")

    @classmethod
    def of_sdram(cls, chip: SdramChip, mhz: float, beat_bytes: int) -> "ProgramTiming":
        """The timing of `weft.hw.sdram.controller.SdramController`, with beats of some bytes.

        Refreshes lengthen each beat by their part of the time, and rows open behind data: this is
        right for long streams. ``rows`` is exact for each burst, but for the time of refreshes.
        """
        timing, words = chip.timing(mhz), beat_bytes // chip.word_bytes
        return cls(
            timing.read_latency(words), round(PERIOD * words / timing.efficiency), ahead=True,
            bursts=SDRAM_BURSTS, rows=SdramRows.of(chip, mhz, beat_bytes),
        )

    @classmethod
    def from_dict(cls, facts: dict) -> "ProgramTiming":
        """The timing whose fields, as `dataclasses.asdict` has them, are ``facts``."""
        rows = facts.get("rows")
        return cls(**facts | {"rows": rows and SdramRows(**rows)})


@dataclass
class _Beat:
    """A beat: its client, and the first and the last vector that it reads there."""

    client: int
    number: int
    first: int
    last: int


class _BeatFifo:
    """`weft.hw.stream.fifo.Fifo` of beats, cycle by cycle."""

    def __init__(self):
        self._words: deque[_Beat] = deque()
        self._next: _Beat | None = None
        self.output: _Beat | None = None

    @property
    def full(self):
        return len(self._words) == FIFO_WORDS

    def step(self, taken, pushed):
        """A cycle: whether the output is taken, and the beat that is pushed."""
        if taken or self.output is None:
            self.output = self._next
            self._next = self._words.popleft() if self._words else None
        if pushed:
            self._words.append(pushed)


class ProgramPortTimes:
    """`weft.hw.network_core.memory.program_memory.ProgramMemory` and its memory, cycle by cycle.

    Parameters
    ----------
    config : NetworkCoreConfig
    timing : ProgramTiming
    """

    def __init__(self, config, timing: ProgramTiming):
        self._vectors, self._timing = config.read_vectors, timing
        self._sdram = timing.rows and SdramTimes(timing.rows)
        self._fifo = _BeatFifo()
        # Two registers of addresses, then the open beat, and the closed beats of its burst.
        self._number: tuple[int, int] | None = None
        self._read: tuple[int, int] | None = None
        self._open: _Beat | None = None
        self._closed = 0
        self._address = 0  # beats of the burst that is offered
        self._first = 0  # of them
        self._due: deque[int] = deque()  # of the beats that the memory reads
        self._inside: deque[int] = deque()  # cycles in which bursts make space for another one
        self._free = 0  # of the next beat, in cycles / 256
        self._index: int | None = None  # of the next vector of a beat that several reads share
        self._arrives: int | None = None
        self._stored = 0  # the cycle in which the next store may be accepted

    @property
    def idle(self) -> bool:
        """No read is under way."""
        return not (
            self._number or self._read or self._open or self._address or self._due
            or self._fifo.output or self._arrives is not None
        )

    def stores(self, now: int) -> bool:
        """Whether a store waits for its response."""
        return now < self._stored

    def store(self, now: int) -> None:
        """Accept a store in this cycle."""
        self._stored = now + STORE + self._timing.latency

    def arrival(self) -> int | None:
        """The client whose data arrive in this cycle."""
        return self._arrives

    def step(self, now: int, requests) -> int | None:
        """A cycle: the vector that each client wants to read; returns the client accepted."""
        taken = self._deliver(now)
        if self._address and self._accepts_burst(now):
            self._due.extend(self._burst(now))
            self._inside.append(self._due[-1] - self._timing.latency + ADDRESS)
            self._address = 0
        beat, pushed = self._open, None
        same = follows = False
        if beat and self._read and self._read[0] == beat.client:
            number, index = self._place(self._read[1])
            same = number == beat.number and index == beat.last + 1
            follows = number == beat.number + 1 and number % BURST != 0
        if beat and not same:
            if self._fifo.full or self._address:
                self._fifo.step(taken, None)
                return None
            pushed = beat
            self._closed += 1
            if not follows:
                self._address, self._closed = self._closed, 0
                self._first = beat.number - self._address + 1
        if same and beat:
            beat.last += 1
        else:
            self._open = self._opened()
        self._fifo.step(taken, pushed)
        accepted = first_request(requests)
        self._read = self._number
        self._number = None if accepted is None else (accepted, requests[accepted])
        return accepted

    def _accepts_burst(self, now):
        """Whether the memory accepts the address of a burst."""
        while self._inside and self._inside[0] <= now:
            self._inside.popleft()
        return not self._timing.bursts or len(self._inside) < self._timing.bursts

    def _burst(self, now):
        """The cycles in which the memory has the beats of a burst, whose address it accepts."""
        latency = self._timing.latency
        if not self._sdram:
            return [self._read_at(now + latency) for _ in range(self._address)]
        first = self._sdram.start(now, self._first, self._address) + latency - ACCESS
        return [first + n * self._timing.rows.words for n in range(self._address)]

    def _read_at(self, due):
        """The cycle in which the memory has the next beat, which is asked for: ``due`` or later."""
        if not self._timing.ahead:
            return due
        first = max(self._free, PERIOD * due)
        self._free = first + self._timing.period
        return -(-first // PERIOD)

    def _opened(self):
        """The beat that the next read opens."""
        if not self._read:
            return None
        number, index = self._place(self._read[1])
        return _Beat(self._read[0], number, index, index)

    def _place(self, vector):
        """The beat of a vector, counted from address 0 of the bus, and its index in it."""
        number, index = divmod(vector, self._vectors)
        return self._timing.first_beat + number, index

    def _deliver(self, now):
        """Pass a vector to its client; returns whether its beat ends."""
        beat = self._fifo.output
        ahead = self._timing.ahead
        offered = self._due and self._due[0] <= now and (ahead or self._free <= PERIOD * now)
        self._arrives = beat.client if beat and offered else None
        if not (beat and offered):
            return False
        here = beat.first if self._index is None else self._index
        self._index = None if here == beat.last else here + 1
        if self._index is not None:
            return False
        if not ahead:
            self._free = max(self._free, PERIOD * now) + self._timing.period
        self._due.popleft()
        if self._sdram and self._due:
            # The controller collects the words of a beat when the beat before is taken.
            self._due[0] = max(self._due[0], now + self._timing.rows.words)
        return True
