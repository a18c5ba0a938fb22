"""The program memory of a network core: reads and stores of vectors become AXI4 bursts."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import BURST, Axi4
from weft.hw.network_core.interface import ReadPort, VectorWrite
from weft.hw.network_core.layouts import VectorAddress, beat_place, vector_number
from weft.hw.stream.fifo import Fifo
from weft.network_core.latencies import PROGRAM_BEATS

__all__ = ["ProgramMemory", "ProgramReads", "ProgramStores", "TIMEOUT"]


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
    reads, read_error, base, halt
        As of `weft.hw.network_core.memory.program_memory.ProgramMemory`.
    ar, r : as of `Axi4`
    idle : Out, 1 bit
        No read waits for its data.
    """

    def __init__(self, config):
        self.config = config
        self.data_bytes = config.beat_bytes
        self.index = range(config.read_vectors)  # of a vector in its beat
        self.entry = data.StructLayout({"client": 1, "first": self.index, "last": self.index})
        axi = Axi4(data_bytes=self.data_bytes).members
        super().__init__({
            "reads": In(ReadPort(config)).array(2), "read_error": Out(1),
            "base": In(32), "halt": In(1),
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
        first, second = (client.request for client in self.reads)
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
        entry, r = entries.o.payload, self.r
        vectors = Signal(self.reads[0].data.shape())
        more, index, take = Signal(), Signal(self.index), Signal()  # more: reads of this beat left
        here = Mux(more, index, entry.first)
        beat = data.View(vectors.shape(), r.payload.data)
        m.d.comb += [
            take.eq(r.valid & entries.o.valid),
            r.ready.eq(entries.o.valid & (here == entry.last)),
            entries.o.ready.eq(r.valid & r.ready),
        ]
        with m.If(take):
            m.d.sync += [more.eq(~r.ready), index.eq(here + 1)]
        m.d.sync += [
            vectors.as_value()[len(beat[0]):].eq(r.payload.data[len(beat[0]):]),
            vectors[0].eq(beat[here]), self.read_error.eq(r.payload.resp.as_value()[1]),
            Cat(client.data_valid for client in self.reads).eq(
                (take & ~dropped).replicate(2) & Cat(~entry.client, entry.client)
            ),
        ]
        m.d.comb += [client.data.eq(vectors) for client in self.reads]
        return entries.o.ready


class ProgramStores(wiring.Component):
    """Writes one vector after the other, and awaits the response of each.

    Only the log of a list is stored, one entry a job: a longer burst would make the end of a list
    wait, and save nothing.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    writes, base, halt
        As of `weft.hw.network_core.memory.program_memory.ProgramMemory`.
    aw, w, b : as of `Axi4`
    stored, error : Out, 1 bit each
        The response of a store of the running list arrives: OKAY, or an error.
    idle : Out, 1 bit
        No store waits for its response.
    """

    def __init__(self, config):
        self.config = config
        self.data_bytes = config.beat_bytes
        axi = Axi4(data_bytes=self.data_bytes).members
        super().__init__({
            "writes": In(stream.Signature(VectorWrite(config))), "base": In(32), "halt": In(1),
            **{name: axi[name] for name in ("aw", "w", "b")},
            "stored": Out(1), "error": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, given = self.config, self.writes.payload
        low, shift = ceil_log2(self.data_bytes), ceil_log2(config.read_vectors)
        place, stale = Signal(range(config.read_vectors)), Signal()
        number = Signal(32 - low + shift, reset_less=True)
        vector, enable = Signal.like(given.data), Signal.like(given.enable)
        aw, w = self.aw, self.w
        with m.If(self.halt & ~self.idle):
            m.d.sync += stale.eq(1)  # of a list that has ended
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.writes.ready.eq(1)]
                m.d.sync += [
                    number.eq(vector_number(config, given.address)),
                    place.eq(beat_place(config, given.address)), stale.eq(self.halt),
                    vector.eq(given.data), enable.eq(given.enable),
                ]
                with m.If(self.writes.valid):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.sync += [
                    aw.valid.eq(1), w.valid.eq(1), w.payload.last.eq(1),
                    aw.payload.addr[low:].eq(number[shift:] + self.base[low:]),
                    w.payload.data.eq(vector.replicate(config.read_vectors)),
                    w.payload.strb.eq(enable << (place * config.array.depth)),
                ]
                m.next = "SEND"
            with m.State("SEND"):
                for channel in (aw, w):
                    with m.If(channel.ready):
                        m.d.sync += channel.valid.eq(0)
                with m.If((~aw.valid | aw.ready) & (~w.valid | w.ready)):
                    m.next = "RESPONSE"
            with m.State("RESPONSE"):
                current = self.b.valid & ~stale & ~self.halt
                failed = self.b.payload.resp.as_value()[1]
                m.d.comb += [
                    self.b.ready.eq(1),
                    self.stored.eq(current & ~failed), self.error.eq(current & failed),
                ]
                with m.If(self.b.valid):
                    m.next = "IDLE"
        return m


TIMEOUT = 1 << 16  # cycles in which an open transaction must move


class ProgramMemory(wiring.Component):
    """A memory behind AXI4, with the clients of a
    `weft.hw.network_core.memory.banked_memory.ReadArbiter`.

    Vector ``number`` has the bytes from ``base + number * depth`` on. The clients compare addresses
    with their limit before they ask. A client gets its vectors in the order of its reads. A beat
    has ``read_vectors`` vectors: a read whose vector is not the first one of a beat gets this
    vector only, and the others are undefined.

    While ``halt`` is 1, no read is accepted. Transactions that are open then are completed, and
    their data and errors are dropped; reads are accepted again when all of them have ended.

    Parameters
    ----------
    config : NetworkCoreConfig
        With a program memory.
    timeout : int
        Cycles; a power of two.

    Attributes
    ----------
    reads : In, `ReadPort` for each of two clients
        The first client has priority.
    read_error : Out, 1 bit, valid with the data of a client
        Their beat had the response SLVERR or DECERR.
    writes : In, stream of `VectorWrite`
    written : Out, 1 bit
        All accepted writes have their responses, and none is offered.
    base : In, 32 bits
        Address of vector 0: a multiple of the bytes of a beat. Stable while a list runs.
    halt : In, 1 bit
        No list runs.
    stored, store_error : Out, 1 bit each
        Pulse: a write has the response OKAY; SLVERR or DECERR.
    timed_out : Out, 1 bit
        Pulse: no channel has moved for ``timeout`` cycles, and a transaction is open.
    idle : Out, 1 bit
        No transaction is open, and none follows while ``halt`` is 1.
    axi : Out, `Axi4`
    """

    def __init__(self, config, *, timeout=TIMEOUT):
        self.config = config
        self.timeout = timeout
        super().__init__({
            "reads": In(ReadPort(config)).array(2), "read_error": Out(1),
            "writes": In(stream.Signature(VectorWrite(config))), "written": Out(1),
            "base": In(32), "halt": In(1),
            "stored": Out(1), "store_error": Out(1), "timed_out": Out(1), "idle": Out(1),
            "axi": Out(Axi4(data_bytes=config.beat_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reads = reads = ProgramReads(self.config)
        m.submodules.stores = stores = ProgramStores(self.config)
        for client, port in zip(self.reads, reads.reads, strict=True):
            connect(m, flipped(client), port)
        connect(m, flipped(self.writes), stores.writes)
        for name, block in (("ar", reads), ("r", reads), ("aw", stores), ("w", stores),
                            ("b", stores)):
            connect(m, getattr(block, name), flipped(getattr(self.axi, name)))
        m.d.comb += [
            self.read_error.eq(reads.read_error),
            self.written.eq(stores.idle & ~self.writes.valid),
            reads.base.eq(self.base), stores.base.eq(self.base),
            reads.halt.eq(self.halt), stores.halt.eq(self.halt),
        ]
        idle = reads.idle & stores.idle
        m.d.comb += self.idle.eq(idle & self.halt)
        m.d.sync += [self.stored.eq(stores.stored), self.store_error.eq(stores.error)]
        self._watch(m, idle)
        return m

    def _watch(self, m, idle):
        """Count the cycles without a transfer while a transaction is open."""
        waited, axi = Signal(range(self.timeout)), self.axi
        moved = Cat(
            channel.valid & channel.ready for channel in (axi.aw, axi.w, axi.b, axi.ar, axi.r)
        ).any()
        m.d.sync += [
            waited.eq(Mux(idle | moved, 0, waited + 1)), self.timed_out.eq(waited.all()),
        ]
