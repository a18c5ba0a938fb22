"""A FIFO between two clock domains."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["AsyncFifo"]


class AsyncFifo(wiring.Component):
    """Words leave in the order of their arrival; the pointers cross the domains in Gray code.

    Both domains must be reset, and the two resets must overlap. The reset of the writer must be
    released last. It is not `amaranth.lib.fifo.AsyncFIFOBuffered`: that one is reset by its write
    domain alone, and decodes the Gray counts for its levels.

    Parameters
    ----------
    shape : shape
        Shape of a word.
    depth : int
        Words of the memory: a power of two, at least 4.
    write_domain, read_domain : str

    Attributes
    ----------
    i : In, stream of ``shape``; in the write domain
    o : Out, stream of ``shape``; in the read domain
        Its payload comes from a register.
    nonempty : Out, 1 bit; in the write domain
        The memory may still hold words.
    next_valid : Out, 1 bit; in the read domain
        The memory holds words behind the offered one.

    Source: C. Cummings, Simulation and Synthesis Techniques for Asynchronous FIFO Design, 2002.
    """

    def __init__(self, shape, *, depth, write_domain, read_domain):
        self.shape = shape
        self.depth = depth
        self.write_domain = write_domain
        self.read_domain = read_domain
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "nonempty": Out(1), "next_valid": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write = memory.write_port(domain=self.write_domain)
        read = memory.read_port(domain="comb")
        # Counts have one bit more than addresses: a full memory differs from an empty one.
        w_count, r_count = Signal(range(2 * self.depth)), Signal(range(2 * self.depth))
        w_gray, r_gray = Signal.like(w_count), Signal.like(r_count)
        w_r_gray, r_w_gray = Signal.like(w_gray), Signal.like(r_gray)  # synchronized copies
        m.submodules.w_cross = FFSynchronizer(w_gray, r_w_gray, o_domain=self.read_domain)
        m.submodules.r_cross = FFSynchronizer(r_gray, w_r_gray, o_domain=self.write_domain)

        full = 3 << ceil_log2(self.depth) - 1  # the Gray codes of a full memory differ in two bits
        m.d.comb += [
            self.i.ready.eq(w_gray != w_r_gray ^ full),
            write.en.eq(self.i.valid & self.i.ready), write.addr.eq(w_count),
            write.data.eq(self.i.payload), self.nonempty.eq(w_gray != w_r_gray),
        ]
        w_next = Signal.like(w_count)
        m.d.comb += w_next.eq(w_count + write.en)
        m.d[self.write_domain] += [w_count.eq(w_next), w_gray.eq(w_next ^ w_next >> 1)]

        r_next = Signal.like(r_count)
        advance = ~self.o.valid | self.o.ready
        m.d.comb += [
            self.next_valid.eq(r_gray != r_w_gray), read.addr.eq(r_count),
            r_next.eq(r_count + (advance & self.next_valid)),
        ]
        m.d[self.read_domain] += [r_count.eq(r_next), r_gray.eq(r_next ^ r_next >> 1)]
        with m.If(advance):
            m.d[self.read_domain] += [
                self.o.valid.eq(self.next_valid), self.o.payload.eq(read.data),
            ]
        return m
