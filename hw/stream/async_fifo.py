"""What passes from one clock to another: a queue of words, and orders that are carried out."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["AsyncFifo", "PulseHandshake"]


class AsyncFifo(wiring.Component):
    """A queue whose two ends have clocks of their own; pointers cross in Gray code.

    Both ends must be reset, at any times that overlap; the writer's end last out of it.

    Parameters
    ----------
    shape : shape
        Of a word.
    depth : int
        A power of two, at least 4.
    writer, reader : str
        Domains.

    Attributes
    ----------
    i : In, stream of ``shape``; of the writer
    o : Out, stream of ``shape``; of the reader
    some : Out
        Of the writer: not all words are known to have left.
    there : Out
        Of the reader: there are words behind the one on offer.

    Source: C. Cummings, Simulation and Synthesis Techniques for Asynchronous FIFO Design, 2002.
    """

    def __init__(self, shape, *, depth, writer, reader):
        self.shape = shape
        self.depth = depth
        self.writer = writer
        self.reader = reader
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "some": Out(1), "there": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write = memory.write_port(domain=self.writer)
        read = memory.read_port(domain="comb")
        count = range(2 * self.depth)
        w_count, w_gray, w_seen = (Signal(count, name=n) for n in ("w_count", "w_gray", "w_seen"))
        r_count, r_gray, r_seen = (Signal(count, name=n) for n in ("r_count", "r_gray", "r_seen"))
        m.submodules.w_cross = FFSynchronizer(w_gray, r_seen, o_domain=self.reader)
        m.submodules.r_cross = FFSynchronizer(r_gray, w_seen, o_domain=self.writer)

        top = 3 << ceil_log2(self.depth) - 1  # the two bits in which a full queue's counts differ
        m.d.comb += [
            self.i.ready.eq(w_gray != w_seen ^ top),
            write.en.eq(self.i.valid & self.i.ready), write.addr.eq(w_count),
            write.data.eq(self.i.payload), self.some.eq(w_gray != w_seen),
        ]
        w_next = Signal.like(w_count)
        m.d.comb += w_next.eq(w_count + write.en)
        m.d[self.writer] += [w_count.eq(w_next), w_gray.eq(w_next ^ w_next >> 1)]

        r_next = Signal.like(r_count)
        moves = ~self.o.valid | self.o.ready
        m.d.comb += [
            self.there.eq(r_gray != r_seen), read.addr.eq(r_count),
            r_next.eq(r_count + (moves & self.there)),
        ]
        m.d[self.reader] += [r_count.eq(r_next), r_gray.eq(r_next ^ r_next >> 1)]
        with m.If(moves):
            m.d[self.reader] += [self.o.valid.eq(self.there), self.o.payload.eq(read.data)]
        return m


class PulseHandshake(wiring.Component):
    """An order that another clock carries out, and its word back that it is done.

    A reset on either end leads to an order too many over there, and to none too few.

    Parameters
    ----------
    giver, doer : str
        Domains.

    Attributes
    ----------
    asks : In, done : Out
        Of the giver. ``asks`` stays until the cycle of ``done``.
    acts : Out, ends : In
        Of the doer. ``acts`` stays until the cycle of ``ends``.
    """

    def __init__(self, *, giver, doer):
        self.giver = giver
        self.doer = doer
        super().__init__({"asks": In(1), "done": Out(1), "acts": Out(1), "ends": In(1)})

    def elaborate(self, platform):
        m = Module()
        asked = Signal()
        answered = Signal()  # is not as asked while an order is under way
        g_answered = Signal()
        d_asked = Signal()
        waits = Signal()
        m.submodules.there = FFSynchronizer(asked, d_asked, o_domain=self.doer)
        m.submodules.back = FFSynchronizer(answered, g_answered, o_domain=self.giver)
        m.d.comb += [
            self.done.eq(waits & (g_answered == asked)),
            self.acts.eq(d_asked != answered),
        ]
        with m.If(self.done):
            m.d[self.giver] += waits.eq(0)
        with m.Elif(self.asks & ~waits & (g_answered == asked)):
            m.d[self.giver] += [waits.eq(1), asked.eq(~asked)]
        with m.If(self.acts & self.ends):
            m.d[self.doer] += answered.eq(d_asked)
        return m
