"""Reads of vectors of the program memory: neighbouring reads share beats, and beats a burst."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import BURST, Axi4
from weft.hw.network_core.layouts import VectorAddress, vector_number
from weft.hw.stream.fifo import Fifo
from weft.network_core.latencies import PROGRAM_BEATS

__all__ = ["ProgramReads"]


class ProgramReads(wiring.Component):
    """Joins reads to beats and bursts, and passes each vector to its client.

    A burst grows while each cycle brings a read of the same beat's next vector, or of the next
    beat. It ends at a multiple of `BURST` beats, so it never crosses 4 KiB. At most PROGRAM_BEATS
    beats and one wait for their data; RREADY waits only while several reads share a beat.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    reads_0, reads_1, valid_0, valid_1, data, read_error, base, halt
        As of `weft.hw.network_core.program_memory.ProgramMemory`.
    ar, r : as of `Axi4`
    idle : Out, 1 bit
        No read waits for its data.
    """

    def __init__(self, config):
        self.config = config
        self.data_bytes = config.beat_bytes
        self.index = range(config.read_vectors)  # of a vector in its beat
        self.entry = data.StructLayout({"client": 1, "first": self.index, "last": self.index})
        address = stream.Signature(VectorAddress(config))
        axi = Axi4(data_bytes=self.data_bytes).members
        super().__init__({
            "reads_0": In(address), "reads_1": In(address), "valid_0": Out(1), "valid_1": Out(1),
            "data": Out(data.ArrayLayout(8 * config.array.depth, config.read_vectors)),
            "read_error": Out(1), "base": In(32), "halt": In(1),
            "ar": axi["ar"], "r": axi["r"],
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.entries = entries = Fifo(
            self.entry, depth=PROGRAM_BEATS, target=self.config.target
        )
        advance, dropped = Signal(), Signal()
        read, waiting = self._address(m, advance, dropped)
        opened = self._bursts(m, read, advance, entries)
        left = self._deliver(m, entries, dropped)
        beats = Signal(range(PROGRAM_BEATS + 8))  # that are open
        draining = Signal()
        m.d.sync += [
            beats.eq(beats + opened - left),
            draining.eq((self.halt | draining) & ~self.idle),
        ]
        m.d.comb += [
            self.idle.eq((beats == 0) & ~waiting), dropped.eq(self.halt | draining),
        ]
        return m

    def _address(self, m, advance, dropped):
        """Choose a read, and compute its beat, two cycles later."""
        config, shift = self.config, ceil_log2(self.config.read_vectors)
        low = ceil_log2(self.data_bytes)
        first, second = self.reads_0, self.reads_1
        n_valid, n_client = Signal(), Signal()
        number = Signal(32 - low + shift, reset_less=True)  # of the vector
        read = Signal(data.StructLayout({
            "valid": 1, "client": 1, "index": self.index, "beat": 32 - low,
        }))
        address = Mux(first.valid, first.payload.as_value(), second.payload.as_value())
        chosen = data.View(VectorAddress(config), address)
        m.d.comb += [
            first.ready.eq(advance & ~dropped), second.ready.eq(first.ready & ~first.valid),
        ]
        with m.If(advance):
            m.d.sync += [
                n_valid.eq((first.valid | second.valid) & ~dropped), n_client.eq(~first.valid),
                number.eq(vector_number(config, chosen)),
                read.valid.eq(n_valid), read.client.eq(n_client), read.index.eq(number[:shift]),
                read.beat.eq(number[shift:] + self.base[low:]),
            ]
        return read, n_valid | read.valid

    def _bursts(self, m, read, advance, entries):
        """Join reads; returns the pulse in which a beat is opened."""
        low = ceil_log2(self.data_bytes)
        open_, client, beat = Signal(), Signal(), Signal.like(read.beat, reset_less=True)
        first, last = Signal(self.index), Signal(self.index)
        start, closed = Signal.like(beat, reset_less=True), Signal(range(BURST))  # of this burst
        mine, same, follows, close = Signal(), Signal(), Signal(), Signal()
        entry, ar = entries.i.payload, self.ar
        m.d.comb += [
            mine.eq(open_ & read.valid & (read.client == client)),
            same.eq(mine & (read.beat == beat) & (read.index == last + 1)),
            follows.eq(mine & (read.beat == beat + 1) & ~beat[:ceil_log2(BURST)].all()),
            close.eq(open_ & ~same),
            advance.eq(~close | (entries.i.ready & (~ar.valid | ar.ready))),
            entries.i.valid.eq(close & advance),
            entry.client.eq(client), entry.first.eq(first), entry.last.eq(last),
        ]
        with m.If(ar.ready):
            m.d.sync += ar.valid.eq(0)
        with m.If(advance):
            with m.If(close):
                m.d.sync += closed.eq(closed + 1)
                with m.If(~follows):
                    m.d.sync += [
                        ar.valid.eq(1), ar.payload.addr[low:].eq(start),
                        ar.payload.len.eq(closed), closed.eq(0),
                    ]
            with m.If(same):
                m.d.sync += last.eq(read.index)
            with m.Else():
                m.d.sync += [
                    open_.eq(read.valid), client.eq(read.client), beat.eq(read.beat),
                    first.eq(read.index), last.eq(read.index),
                ]
                with m.If(~follows):
                    m.d.sync += start.eq(read.beat)
        return advance & read.valid & ~same

    def _deliver(self, m, entries, dropped):
        """Pass the vectors of a beat to its client; returns the pulse with its last read."""
        entry, r, vectors = entries.o.payload, self.r, self.data.shape()
        more, index, take = Signal(), Signal(self.index), Signal()  # more: reads of this beat left
        here = Mux(more, index, entry.first)
        beat = data.View(vectors, r.payload.data)
        m.d.comb += [
            take.eq(r.valid & entries.o.valid),
            r.ready.eq(entries.o.valid & (here == entry.last)),
            entries.o.ready.eq(r.valid & r.ready),
        ]
        with m.If(take):
            m.d.sync += [more.eq(~r.ready), index.eq(here + 1)]
        m.d.sync += [
            self.data.as_value()[len(beat[0]):].eq(r.payload.data[len(beat[0]):]),
            self.data[0].eq(beat[here]), self.read_error.eq(r.payload.resp.as_value()[1]),
            Cat(self.valid_0, self.valid_1).eq(
                (take & ~dropped).replicate(2) & Cat(~entry.client, entry.client)
            ),
        ]
        return entries.o.ready
