"""The reader: stretches of memory become bursts, and their beats wait to be taken in units."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.buffers.lfsr import lfsr_next
from weft.hw.dma.axi import BURST, Axi4

__all__ = ["ReadRequest", "Reader"]


ADDRESS = 32  # bits of it


class ReadRequest(data.StructLayout):
    """Beats of memory that follow each other: from the one that holds ``addr``.

    ``last`` is the last one, counted from the multiple of `BURST` beats that ``addr`` lies behind.
    """

    def __init__(self, *, beats):
        super().__init__({"addr": ADDRESS, "last": range(beats + BURST)})


class Reader(wiring.Component):
    """Reads stretches, in order, in bursts that end where a multiple of `BURST` beats begins.

    A burst begins when there is room for all its beats, so R never waits. It leaves in the cycle
    after the one in which its stretch was taken, at best; one a cycle.

    Parameters
    ----------
    data_bytes : int
    beats : int
        Of a stretch, at most.
    unit : int
        Bytes that are taken at once: a power of two.
    depth : int
        Beats that wait at most, or are on their way: a power of two, 4 bursts or more.
    target : str
        That of a Config.

    Attributes
    ----------
    stretches : In, stream of `ReadRequest`
    ar, r : as of `Axi4`
    there : Out
        A beat is.
    index : In
        Of the unit that is wanted, in the oldest beat.
    leaves : In
        Pulse, while it is ``there``: nothing more is wanted of the beat.
    unit : Out
        The unit, two cycles later.
    spoilt : Out
        Pulse: the beat that left three cycles before had come with an error.
    stop : In
        No burst begins, and beats are dropped.
    idle : Out
        No burst is under way, and no beat waits behind it.
    error : Out
        Pulse: a beat came with an error.
    """

    def __init__(self, *, data_bytes, beats, unit, depth, target):
        self.data_bytes = data_bytes
        self.parts = data_bytes // unit
        self.target = target
        self.depth = depth
        axi = Axi4(data_bytes=data_bytes).members
        super().__init__({
            "stretches": In(stream.Signature(ReadRequest(beats=beats))),
            "ar": axi["ar"],
            "r": axi["r"],
            "there": Out(1),
            "index": In(range(self.parts)),
            "leaves": In(1),
            "unit": Out(8 * unit),
            "spoilt": Out(1),
            "stop": In(1),
            "idle": Out(1),
            "error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        self._split(m)
        m.submodules.bank = bank = Bank(
            width=8 * self.data_bytes, depth=2 * self.depth, parts=self.parts, target=self.target
        )
        m.submodules.errors = errors = Bank(width=1, depth=2 * self.depth, target=self.target)
        puts, gets = Signal(range(2 * self.depth)), Signal(range(2 * self.depth))
        beat, leaves = self.r.payload, Signal()
        some, more = Signal(), Signal()  # beats are here; others than the oldest
        wrong, gone = beat.resp.as_value()[1], Signal(errors.LATENCY)
        m.d.comb += [
            self.r.ready.eq(1), leaves.eq(self.there & (self.leaves | self.stop)),
            bank.write_en.eq(self.r.valid), bank.write_addr.eq(puts), bank.write_data.eq(beat.data),
            bank.read_addr.eq(Cat(self.index, gets)), self.unit.eq(bank.read_data),
            errors.write_en.eq(self.r.valid), errors.write_addr.eq(puts),
            errors.write_data.eq(wrong),
            errors.read_addr.eq(gets),
            some.eq(gets != puts), more.eq(lfsr_next(gets) != puts),
        ]
        m.d.sync += [
            self.error.eq(self.r.valid & wrong),
            gone.eq(Cat(leaves, gone)), self.spoilt.eq(gone[1] & errors.read_data),
            self.there.eq(Mux(leaves, more, some)),
        ]
        with m.If(self.r.valid):
            m.d.sync += puts.eq(lfsr_next(puts))
        with m.If(leaves):
            m.d.sync += gets.eq(lfsr_next(gets))

        # Beats that may be asked for, less two bursts: one that leaves, one not yet subtracted. One
        # that has left is the carry of the sum.
        most = self.depth - 2 * BURST
        room = Signal(signed(ceil_log2(self.depth) + 1), init=most)
        asks, left = Signal(), Signal()
        asked = Cat(~self.ar.payload.len[:len(self.length)], 1).as_signed()
        m.d.comb += [
            self.go.eq(~room[-1] & ~self.stop & (~self.ar.valid | self.ar.ready)),
            self.idle.eq((room == most) & ~asks & ~self.begins),
        ]
        m.d.sync += [
            asks.eq(self.begins), left.eq(leaves),
            room.eq((Cat(1, room).as_signed() + Cat(left, Mux(asks, asked, 0)).as_signed()) >> 1),
        ]
        return m

    def _split(self, m):
        """Stretches into bursts: ``begins`` with one of ``length`` + 1 beats when it may ``go``."""
        low, block = ceil_log2(self.data_bytes), ceil_log2(BURST)
        there = Signal()
        first = Signal(block, reset_less=True)  # beat of the block that is due
        blocks = Signal(ADDRESS - low - block, reset_less=True)
        last = Signal.like(self.stretches.payload.last, reset_less=True)
        more = Signal()  # blocks are behind this one
        self.go, self.begins, self.length = Signal(), Signal(), Signal(block)
        m.d.comb += [
            self.begins.eq(there & self.go),
            self.length.eq(Mux(more, BURST - 1, last[:block]) - first),
            self.stretches.ready.eq(~there | (self.begins & ~more)),
        ]
        with m.If(self.ar.ready):
            m.d.sync += self.ar.valid.eq(0)
        with m.If(self.begins):
            m.d.sync += [
                self.ar.valid.eq(1),
                self.ar.payload.addr[low:].eq(first | (blocks << block)),
                self.ar.payload.len.eq(self.length),
                first.eq(0), blocks.eq(blocks + 1), last[block:].eq(last[block:] - 1),
                more.eq(last[block:] != 1),
            ]
        new = self.stretches.payload
        with m.If(self.stretches.ready):
            m.d.sync += [
                there.eq(self.stretches.valid),
                first.eq(new.addr[low:]), blocks.eq(new.addr[low + block:]), last.eq(new.last),
                more.eq(new.last[block:].any()),
            ]
