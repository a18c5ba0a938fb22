"""Bursts of AXI4 as requests to a `Scheduler`, and the responses of those that are none."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from weft.hw.dma.axi import BURST, Axi4, AxiResponse
from weft.hw.sdram.scheduler import Request

__all__ = ["Bursts"]


class Bursts(wiring.Component):
    """Accepts a burst of reads and a burst of writes, and makes requests of them.

    A burst of reads is one request. Each beat of a burst of writes is a request of its own, made
    when the beat is valid: so reads go on while a master takes its time with the data of a write.
    If both wait, they take turns.

    A burst is refused if it is ``foreign``, starts within a beat, crosses a multiple of `BURST`
    beats, or lies outside the chip. It changes nothing, and gets SLVERR: reads in each beat, after
    the data of all reads before it. So does a write whose WLAST does not match AWLEN; its beats are
    written. If DQM of the chip is not wired, so does a write with a word that is enabled in part;
    this word is not written.

    Parameters
    ----------
    chip : `weft.sdram.SdramChip`
    data_bytes : int
        Bytes of a beat.

    Attributes
    ----------
    aw, w, b, ar : as of a slave with `Axi4`
    ar_foreign, aw_foreign : In, 1 bit each, valid with the address
        The burst is none of INCR with whole beats.
    request, offered, taken : as of `Scheduler`
    load : Out, 1 bit
        The beat on ``w`` belongs to an accepted request, and is taken in this cycle.
    free : In, 1 bit
        A beat can be taken.
    refuse : In, 1 bit
        No beat of an accepted read is left.
    error, error_last : Out, 1 bit each
        An SLVERR of a read is offered on R; it is the last one of its burst.
    error_taken : In, 1 bit
        It is taken.
    """

    def __init__(self, chip, *, data_bytes):
        self.chip = chip
        self.data_bytes = data_bytes
        axi = Axi4(data_bytes=data_bytes).flip().members
        layout = Request(chip, data_bytes=data_bytes)
        super().__init__({
            **{name: axi[name] for name in ("aw", "w", "b", "ar")},
            "ar_foreign": In(1), "aw_foreign": In(1),
            "request": Out(layout), "offered": Out(1), "taken": In(1),
            "load": Out(1), "free": In(1),
            "refuse": In(1), "error": Out(1), "error_last": Out(1), "error_taken": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        reads = self._hold(m, "ar", self.ar, self.ar_foreign)
        writes = self._hold(m, "aw", self.aw, self.aw_foreign)
        booked = Signal()  # a request of a write is inside, and its beat is still on W
        read, write, write_turn, choose = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            read.eq(reads.valid & ~reads.refused),
            write.eq(writes.valid & ~writes.refused & self.w.valid & ~booked & ~self.b.valid),
            choose.eq(write & (write_turn | ~read)), self.offered.eq(read | write),
            self.request.write.eq(choose), self.request.len.eq(Mux(choose, 0, reads.len)),
            Cat(self.request.beat, self.request.bank, self.request.row).eq(
                Mux(choose, writes.beat, reads.beat)
            ),
        ]
        with m.If(self.taken):
            m.d.sync += write_turn.eq(~choose)
            with m.If(choose):
                m.d.sync += booked.eq(1)
            with m.Else():
                m.d.sync += reads.valid.eq(0)
        with m.If(self.load):
            m.d.sync += booked.eq(0)
        self._write_beats(m, writes, booked)
        self._read_errors(m, reads)
        return m

    def _hold(self, m, name, channel, foreign):
        """A register with the burst of an address channel."""
        low, inside = exact_log2(self.data_bytes), exact_log2(self.chip.size)
        block = exact_log2(BURST)
        given = channel.payload
        low_bits, outside = given.addr[:low], given.addr[inside:]
        held = Signal(data.StructLayout({
            "valid": 1, "refused": 1, "beat": inside - low, "len": 8,
        }), name=name)
        end = Signal(block + 1, name=f"{name}_end")
        m.d.comb += [
            channel.ready.eq(~held.valid),
            end.eq(given.addr[low:][:block] + given.len[:block]),
        ]
        with m.If(channel.ready):
            m.d.sync += [
                held.valid.eq(channel.valid), held.beat.eq(given.addr[low:inside]),
                held.len.eq(given.len),
                held.refused.eq(
                    Cat(foreign, outside, low_bits, given.len[block:], end[-1]).any()
                ),
            ]
        return held

    def _write_beats(self, m, writes, booked):
        """Take the beats of a burst of writes, then respond."""
        w, b = self.w, self.b
        wrong, mismatch, end = Signal(), Signal(), Signal()
        m.d.comb += [
            self.load.eq(booked & self.free),
            w.ready.eq(self.load | (writes.valid & writes.refused & ~b.valid)),
            end.eq(writes.len == 0), mismatch.eq(self._mismatch(end)),
        ]
        with m.If(w.valid & w.ready):
            m.d.sync += [
                writes.beat[: exact_log2(BURST)].eq(writes.beat[: exact_log2(BURST)] + 1),
                writes.len.eq(writes.len - 1), wrong.eq(~end & (wrong | mismatch)),
                b.valid.eq(end),
                b.payload.resp.eq(Mux(
                    writes.refused | wrong | mismatch, AxiResponse.SLVERR, AxiResponse.OKAY
                )),
            ]
        with m.If(b.valid & b.ready):
            m.d.sync += [b.valid.eq(0), writes.valid.eq(0)]

    def _mismatch(self, end):
        """WLAST is not at the end of the burst, or the chip cannot write the bytes of a word."""
        strb, size = self.w.payload.strb, self.chip.word_bytes
        wrong = self.w.payload.last != end
        if self.chip.masks:
            return wrong
        words = [strb[first:first + size] for first in range(0, self.data_bytes, size)]
        return wrong | Cat(word.any() & ~word.all() for word in words).any()

    def _read_errors(self, m, reads):
        """Offer the beats of a refused burst of reads."""
        m.d.comb += self.error_last.eq(reads.len == 0)
        with m.If(reads.valid & reads.refused & self.refuse):
            m.d.sync += self.error.eq(1)
        with m.If(self.error & self.error_taken):
            m.d.sync += reads.len.eq(reads.len - 1)
            with m.If(self.error_last):
                m.d.sync += [self.error.eq(0), reads.valid.eq(0)]
