"""The reader: turns read requests into bursts, and buffers their beats."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.dma.axi import BURST, Axi4
from weft.hw.stream.fifo import lfsr_next

__all__ = ["ReadRequest", "Reader"]

ADDRESS_BITS = 32
BLOCK = ceil_log2(BURST)


class ReadRequest(data.StructLayout):
    """A run of consecutive bytes in memory, for the beats that contain it.

    A block is `BURST` beats, aligned to its size. ``addr`` is the address of the first byte.
    ``last_beat`` is the index of the last beat, counted from the start of the block that contains
    ``addr``.

    ::

        beat of the block   0 1 2 3 ... 15 | 16 17 18     16 bytes per beat
        requested beats           3 ... 15 | 16 17        addr = 0x1034, last_beat = 17
        bursts                    \\______/   \\___/

    Parameters
    ----------
    max_beats : int
        Beats of the longest request.
    """

    def __init__(self, *, max_beats):
        super().__init__({"addr": ADDRESS_BITS, "last_beat": range(max_beats + BURST)})


class BurstSplitter(wiring.Component):
    """Splits read requests into bursts, each within a block of `BURST` beats.

    A burst starts at the earliest in the cycle after its request was accepted; one per cycle.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    max_beats : int
        Beats of the longest request.
    addr_bits : int
        Significant bits of an address.

    Attributes
    ----------
    requests : In, stream of `ReadRequest`
    ar : Out, as of `Axi4`
    enable : In
        1 bit; a burst may start in this cycle.
    start : Out
        1 bit; pulse: a burst starts. It is on ``ar`` from the next cycle on.
    length : Out
        Beats of the burst less one; valid with ``start``.
    """

    def __init__(self, *, data_bytes, max_beats, addr_bits):
        self.data_bytes = data_bytes
        self.addr_bits = addr_bits
        super().__init__({
            "requests": In(stream.Signature(ReadRequest(max_beats=max_beats))),
            "ar": Axi4(data_bytes=data_bytes).members["ar"],
            "enable": In(1),
            "start": Out(1),
            "length": Out(BLOCK),
        })

    def elaborate(self, platform):
        m = Module()
        low = ceil_log2(self.data_bytes)
        request = self.requests.payload
        busy = Signal()
        first = Signal(BLOCK, reset_less=True)  # first beat of the burst within its block
        block = Signal(self.addr_bits - low - BLOCK, reset_less=True)
        last = Signal.like(request.last_beat, reset_less=True)  # from the start of this block
        more_blocks = Signal()
        m.d.comb += [
            self.start.eq(busy & self.enable),
            self.length.eq(Mux(more_blocks, BURST - 1, last[:BLOCK]) - first),
            self.requests.ready.eq(~busy | (self.start & ~more_blocks)),
        ]
        with m.If(self.ar.ready):
            m.d.sync += self.ar.valid.eq(0)
        with m.If(self.start):
            m.d.sync += [
                self.ar.valid.eq(1),
                self.ar.payload.addr[low:].eq(first | (block << BLOCK)),
                self.ar.payload.len.eq(self.length),
                first.eq(0), block.eq(block + 1), last[BLOCK:].eq(last[BLOCK:] - 1),
                more_blocks.eq(last[BLOCK:] != 1),
            ]
        with m.If(self.requests.ready):
            m.d.sync += [
                busy.eq(self.requests.valid),
                first.eq(request.addr[low:]), block.eq(request.addr[low + BLOCK:]),
                last.eq(request.last_beat), more_blocks.eq(request.last_beat[BLOCK:].any()),
            ]
        return m


class Reader(wiring.Component):
    """Reads the requested beats in order and offers them one at a time.

    A burst starts only when the buffer has space for all its beats, so RREADY is always high. The
    consumer takes a beat in parts of ``part_bytes`` bytes. It sets ``index`` to the requested part,
    and gets this part on ``part`` two cycles later. With the last part that it needs of a beat, it
    pulses ``pop``.

    ::

        cycle      0        1        2
        valid      1        1
        index      i
        pop        1                          the next beat is available in cycle 1
        part                         part i of the beat that was available in cycle 0

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    max_beats : int
        Beats of the longest request.
    part_bytes : int
        Bytes of a part: a power of two.
    depth : int
        Beats requested and not yet popped, at most: a power of two, 4 bursts or more.
    target : str
        As in Config.
    addr_bits : int
        Significant bits of an address.

    Attributes
    ----------
    requests : In, stream of `ReadRequest`
    ar, r : as of `Axi4`
    valid : Out
        1 bit; a beat is available.
    index : In
        Index of the requested part within the available beat.
    pop : In
        1 bit; pulse while ``valid``: no further part of the beat is needed.
    part : Out
        ``part_bytes`` bytes; the part that was requested two cycles before.
    pop_error : Out
        1 bit; pulse: the beat popped three cycles before had an error response.
    stop : In
        1 bit; no burst starts, and beats are dropped.
    idle : Out
        1 bit; no burst is in flight and no beat is buffered.
    error : Out
        1 bit; pulse: a beat arrived with an error response.
    """

    def __init__(
        self, *, data_bytes, max_beats, part_bytes, depth, target, addr_bits=ADDRESS_BITS
    ):
        self.data_bytes = data_bytes
        self.max_beats = max_beats
        self.parts = data_bytes // part_bytes
        self.depth = depth
        self.target = target
        self.addr_bits = addr_bits
        axi = Axi4(data_bytes=data_bytes).members
        super().__init__({
            "requests": In(stream.Signature(ReadRequest(max_beats=max_beats))),
            "ar": axi["ar"],
            "r": axi["r"],
            "valid": Out(1),
            "index": In(range(self.parts)),
            "pop": In(1),
            "part": Out(8 * part_bytes),
            "pop_error": Out(1),
            "stop": In(1),
            "idle": Out(1),
            "error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.splitter = splitter = BurstSplitter(
            data_bytes=self.data_bytes, max_beats=self.max_beats, addr_bits=self.addr_bits
        )
        connect(m, flipped(self.requests), splitter.requests)
        connect(m, splitter.ar, flipped(self.ar))
        pop = self._buffer(m)
        self._reserve(m, splitter, pop)
        return m

    def _buffer(self, m):
        """Store beats and their errors, and offer the oldest; returns the pop of this cycle."""
        m.submodules.bank = bank = Bank(
            width=8 * self.data_bytes, depth=2 * self.depth, parts=self.parts, target=self.target
        )
        m.submodules.errors = errors = Bank(width=1, depth=2 * self.depth, target=self.target)
        put_addr, get_addr = Signal(range(2 * self.depth)), Signal(range(2 * self.depth))
        beat, pop = self.r.payload, Signal()
        nonempty, more = Signal(), Signal()  # more: beats besides the oldest
        error, popped = beat.resp.as_value()[1], Signal(errors.LATENCY)
        m.d.comb += [
            self.r.ready.eq(1), pop.eq(self.valid & (self.pop | self.stop)),
            bank.write_en.eq(self.r.valid), bank.write_addr.eq(put_addr),
            bank.write_data.eq(beat.data),
            bank.read_addr.eq(Cat(self.index, get_addr)), self.part.eq(bank.read_data),
            errors.write_en.eq(self.r.valid), errors.write_addr.eq(put_addr),
            errors.write_data.eq(error), errors.read_addr.eq(get_addr),
            nonempty.eq(get_addr != put_addr), more.eq(lfsr_next(get_addr) != put_addr),
        ]
        m.d.sync += [
            self.error.eq(self.r.valid & error),
            popped.eq(Cat(pop, popped)), self.pop_error.eq(popped[1] & errors.read_data),
            self.valid.eq(Mux(pop, more, nonempty)),
        ]
        with m.If(self.r.valid):
            m.d.sync += put_addr.eq(lfsr_next(put_addr))
        with m.If(pop):
            m.d.sync += get_addr.eq(lfsr_next(get_addr))
        return pop

    def _reserve(self, m, splitter, pop):
        """Count the free places of the buffer, and let a burst start while there are enough.

        ``free`` is the number of free places, less two bursts: the one that starts now, and the
        one that started a cycle before and is not yet subtracted. A popped beat is the carry-in
        of the adder.
        """
        most = self.depth - 2 * BURST
        free = Signal(signed(ceil_log2(self.depth) + 1), init=most)
        started, popped = Signal(), Signal()
        taken = Cat(~self.ar.payload.len[:BLOCK], 1).as_signed()  # minus the burst's beats
        m.d.comb += [
            splitter.enable.eq(~free[-1] & ~self.stop & (~self.ar.valid | self.ar.ready)),
            self.idle.eq((free == most) & ~started & ~splitter.start),
        ]
        m.d.sync += [
            started.eq(splitter.start), popped.eq(pop),
            free.eq(
                (Cat(1, free).as_signed() + Cat(popped, Mux(started, taken, 0)).as_signed()) >> 1
            ),
        ]
