"""The host's way to the program memory: between the master of a core and its memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.interface import ReadPort, VectorWrite
from weft.hw.network_core.layouts import beat_place, vector_number
from weft.network_core.latencies import PROGRAM_BEATS

__all__ = ["ProgramAccess"]


class ProgramAccess(wiring.Component):
    """Writes and reads single vectors of the program memory for the host, beside the core.

    An access is one beat. It waits until no transaction of the core is open. Transactions of the
    core that follow wait for it. Between two accesses, a burst of the core may pass. So a list runs
    on, slower.

    Parameters
    ----------
    config : NetworkCoreConfig
        With a program memory.

    Attributes
    ----------
    core : In, `Axi4`
        From the core.
    writes : In, stream of `VectorWrite`
        Taken when the memory has the data: later reads of host and core find them.
    reads : In, `ReadPort`
        The vector comes alone: the others are undefined. It is 0 if the memory answers with an
        error.
    memory : Out, `Axi4`
        To the memory, whose byte 0 is that of vector 0.
    """

    def __init__(self, config):
        self.config = config
        self.data_bytes = config.beat_bytes
        axi = Axi4(data_bytes=self.data_bytes)
        super().__init__({
            "core": In(axi), "writes": In(stream.Signature(VectorWrite(config))),
            "reads": In(ReadPort(config)), "memory": Out(axi),
        })

    def elaborate(self, platform):
        m = Module()
        core, memory = self.core, self.memory
        # wanted: an access waits; held: the core begins no transaction; mine: the channels are the
        # host's
        wanted, held, mine = Signal(), Signal(), Signal()
        m.d.comb += wanted.eq(self.writes.valid | self.reads.request.valid)
        drained = self._count(m)
        for name in ("aw", "w", "ar"):
            of_core, of_memory = getattr(core, name), getattr(memory, name)
            with m.If(~mine):
                m.d.comb += [
                    of_memory.valid.eq(of_core.valid & ~held),
                    of_memory.payload.eq(of_core.payload),
                    of_core.ready.eq(of_memory.ready & ~held),
                ]
        for name in ("b", "r"):
            of_core, of_memory = getattr(core, name), getattr(memory, name)
            m.d.comb += of_core.payload.eq(of_memory.payload)
            with m.If(~mine):
                m.d.comb += [
                    of_core.valid.eq(of_memory.valid), of_memory.ready.eq(of_core.ready),
                ]
        # AXI4 does not allow that an offered address goes away. So the core is held only while it
        # offers none that the memory does not take, and no part of a write.
        offered = core.ar.valid & ~memory.ar.ready | core.aw.valid | core.w.valid
        with m.FSM():
            with m.State("CORE"):
                writing, address, place = self._place(m)
                with m.If(held):
                    with m.If(drained):
                        m.next = "READ"
                        with m.If(writing):
                            m.next = "WRITE"
                with m.Else():
                    m.d.sync += held.eq(wanted & ~offered)
            self._write(m, mine, held, address, place)
            self._read(m, mine, held, address, place)
        return m

    def _count(self, m):
        """Count the transactions of the core that are open; whether there is none.

        At most as many bursts of reads are open as beats: PROGRAM_BEATS, and a few that leave.
        One write is open at most, because the core waits for its response.
        """
        core = self.core
        reads, writes = Signal(range(PROGRAM_BEATS + 8)), Signal(2)
        asked = core.ar.valid & core.ar.ready
        ended = core.r.valid & core.r.ready & core.r.payload.last
        m.d.sync += [
            reads.eq(reads + asked - ended),
            writes.eq(
                writes + (core.aw.valid & core.aw.ready) - (core.b.valid & core.b.ready)
            ),
        ]
        return (reads == 0) & (writes == 0)

    def _place(self, m):
        """The access that waits.

        Returns
        -------
        (Value, Value, Value)
            Whether it writes; the byte address of its beat; the place of its vector in this beat.
            They follow the access by a cycle, and stay while it is made.
        """
        config, shift = self.config, ceil_log2(self.config.read_vectors)  # bits of the place
        low = ceil_log2(self.data_bytes)  # bits of an address inside of a beat
        writing = Signal()
        requested = Mux(
            self.writes.valid, self.writes.payload.address.as_value(),
            self.reads.request.payload.as_value(),
        )
        vector = data.View(self.writes.payload.shape()["address"].shape, requested)
        number, place = Signal(32 - low + shift), Signal(range(config.read_vectors))
        m.d.sync += [
            writing.eq(self.writes.valid),
            number.eq(vector_number(config, vector)), place.eq(beat_place(config, vector)),
        ]
        return writing, number[shift:] << low, place

    def _write(self, m, mine, held, address, place):
        """The states of a write."""
        config, memory, write = self.config, self.memory, self.writes.payload
        sent = {name: Signal(name=f"{name}_sent") for name in ("aw", "w")}
        with m.State("WRITE"):
            m.d.comb += [
                mine.eq(1), memory.aw.payload.addr.eq(address), memory.w.payload.last.eq(1),
                memory.w.payload.data.eq(write.data.replicate(config.read_vectors)),
                memory.w.payload.strb.eq(write.enable << (place * config.array.depth)),
            ]
            for name, flag in sent.items():
                channel = getattr(memory, name)
                m.d.comb += channel.valid.eq(~flag)
                with m.If(channel.ready):
                    m.d.sync += flag.eq(1)
            m.d.comb += memory.b.ready.eq(1)
            with m.If(memory.b.valid):
                m.d.comb += self.writes.ready.eq(1)
                m.d.sync += [held.eq(0), *(flag.eq(0) for flag in sent.values())]
                m.next = "CORE"

    def _read(self, m, mine, held, address, place):
        """The states of a read."""
        memory, reads = self.memory, self.reads
        r = memory.r
        beat = data.View(reads.data.shape(), r.payload.data)
        with m.State("READ"):
            m.d.comb += [
                mine.eq(1), memory.ar.valid.eq(1), memory.ar.payload.addr.eq(address),
                reads.request.ready.eq(memory.ar.ready),
            ]
            with m.If(memory.ar.ready):
                m.next = "BEAT"
        with m.State("BEAT"):
            m.d.comb += [mine.eq(1), r.ready.eq(1)]
            with m.If(r.valid):
                m.d.sync += held.eq(0)
                m.next = "CORE"
        failed = r.payload.resp.as_value()[1]  # SLVERR or DECERR
        m.d.sync += [
            reads.data[0].eq(Mux(failed, 0, beat[place])),
            reads.data_valid.eq(mine & r.valid & r.ready),
        ]
