"""The queue: where chunks land at the end of the result path, each in a place kept for it."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

__all__ = ["Completion", "ReorderBuffer"]


class Completion(data.StructLayout):
    """A chunk at the end of its way: a value for each lane, and what the sender is to know."""

    def __init__(self, *, chunk, acc, lanes):
        super().__init__({"sums": data.ArrayLayout(acc, lanes), "mark": chunk["mark"].shape})


class ReorderBuffer(wiring.Component):
    """``places`` chunks, of which none is ever refused: the collector counts them.

    The mark of a chunk comes in as it is asked for. Its sums come ``raw`` cycles later, or if
    something finishes them its results, ``finished`` cycles later: in order. In that cycle the
    chunk can be taken, if those before it are gone.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    acc : shape
    lanes, places : int
        ``places`` is a power of two.
    raw, finished : int
        ``finished`` is 0 where nothing finishes chunks.
    landing : int
        Cycles until a chunk that has come can be taken: 0 where it is shown as it comes, 1 with a
        register at the output, 2 where values wait in a block of memory.

    Attributes
    ----------
    chunks : In, ``valid`` and a chunk
        Asked for.
    sums, results : In, ``lanes`` of them
    o : Out, stream of `Completion`
    """

    def __init__(self, *, chunk, acc, lanes, places, raw, finished, landing):
        self.places = places
        self.raw = raw
        self.finished = finished
        self.landing = landing
        self.Arrival = Completion(chunk=chunk, acc=acc, lanes=lanes)
        values = data.ArrayLayout(acc, lanes)
        super().__init__({
            "chunks": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(values),
            "results": In(values),
            "o": Out(stream.Signature(self.Arrival)),
        })

    def elaborate(self, platform):
        m = Module()
        # Who is on the way, by the cycles since he was asked for.
        finishes = self.chunks.chunk.finishes
        sums, arrives = self.sums.as_value(), Signal()
        ways = [(self.raw, self.chunks.valid & ~finishes)]
        if self.finished:
            ways.append((self.finished, self.chunks.valid & finishes))
        ahead = []
        for latency, there in ways:
            for _ in range(latency - 1):
                following = Signal(name="way")
                m.d.sync += following.eq(there)
                there = following
            ahead.append(there)
        m.d.sync += arrives.eq(Cat(ahead).any())
        if self.finished:
            finished = Signal()
            m.d.sync += finished.eq(ahead[1])
            sums = Mux(finished, self.results.as_value(), sums)

        width = ceil_log2(self.places)
        asked, landed, next_out = (Signal(width, name=n) for n in ("asked", "landed", "next_out"))
        spare = Signal(signed(width + 1), init=-1)  # chunks that have landed, but for one
        empty = spare[-1]
        out = stream.Signature(self.Arrival).create()
        if self.landing == 1:
            m.d.comb += out.ready.eq(~self.o.valid | self.o.ready)
            with m.If(out.ready):
                m.d.sync += [self.o.valid.eq(out.valid), self.o.payload.eq(out.payload)]
        else:
            connect(m, out, flipped(self.o))
        taken = out.valid & out.ready
        attrs = {"ram_block": 1, "no_rw_check": 1} if self.landing == 2 else {}
        marks, landing = (
            Memory(shape=shape, depth=self.places, init=[], attrs=attrs)
            for shape in (out.payload.mark.shape(), len(sums))
        )
        m.submodules += [marks, landing]
        for memory, en, place, value in (
            (marks, self.chunks.valid, asked, self.chunks.chunk.mark),
            (landing, arrives, landed, sums),
        ):
            write = memory.write_port()
            m.d.comb += [write.en.eq(en), write.addr.eq(place), write.data.eq(value)]
            with m.If(en):
                m.d.sync += place.eq(place + 1)
        domain = "sync" if self.landing == 2 else "comb"
        mark, late = (memory.read_port(domain=domain) for memory in (marks, landing))
        m.d.comb += out.payload.mark.eq(mark.data)
        if self.landing == 2:  # what is next is asked for; what lies there is known a cycle later
            there = Signal()
            m.d.sync += there.eq(arrives)
            m.d.comb += [
                mark.addr.eq(next_out + taken),
                out.valid.eq(~empty),
                out.payload.sums.as_value().eq(late.data),
            ]
            arrives = there
        else:
            m.d.comb += [
                mark.addr.eq(next_out),
                out.valid.eq(~empty | arrives),
                out.payload.sums.as_value().eq(Mux(empty, sums, late.data)),
            ]
        m.d.comb += late.addr.eq(mark.addr)
        with m.If(arrives & ~taken):
            m.d.sync += spare.eq(spare + 1)
        with m.Elif(taken & ~arrives):
            m.d.sync += spare.eq(spare - 1)
        with m.If(taken):
            m.d.sync += next_out.eq(next_out + 1)
        return m
