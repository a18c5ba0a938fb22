"""What passes from one clock domain to another: a FIFO, and pulses by a handshake."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["AsyncFifo", "PulseHandshake"]


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


class PulseHandshake(wiring.Component):
    """Carries one request at a time from domain ``src`` to ``dst``, and its acknowledge back.

    A reset of either domain may duplicate a request but never loses one. It is not
    `amaranth.lib.cdc.PulseSynchronizer`, which has no acknowledge.

    Parameters
    ----------
    src, dst : str
        Domains.

    Attributes
    ----------
    src_req : In, 1 bit; in ``src``
        Request; must stay high until the cycle of ``src_ack``.
    src_ack : Out, 1 bit; in ``src``
        Pulse: ``dst`` acknowledged the request.
    dst_req : Out, 1 bit; in ``dst``
        Request; stays high until the cycle of ``dst_ack``.
    dst_ack : In, 1 bit; in ``dst``; valid with ``dst_req``
        Acknowledge.
    """

    def __init__(self, *, src, dst):
        self.src = src
        self.dst = dst
        super().__init__({
            "src_req": In(1), "src_ack": Out(1), "dst_req": Out(1), "dst_ack": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        # Two-phase signalling: a request is pending while the two toggles differ.
        req_toggle, ack_toggle = Signal(), Signal()
        src_ack_toggle, dst_req_toggle = Signal(), Signal()  # synchronized copies
        pending = Signal()
        m.submodules.req_sync = FFSynchronizer(req_toggle, dst_req_toggle, o_domain=self.dst)
        m.submodules.ack_sync = FFSynchronizer(ack_toggle, src_ack_toggle, o_domain=self.src)
        m.d.comb += [
            self.src_ack.eq(pending & (src_ack_toggle == req_toggle)),
            self.dst_req.eq(dst_req_toggle != ack_toggle),
        ]
        with m.If(self.src_ack):
            m.d[self.src] += pending.eq(0)
        with m.Elif(self.src_req & ~pending & (src_ack_toggle == req_toggle)):
            m.d[self.src] += [pending.eq(1), req_toggle.eq(~req_toggle)]
        with m.If(self.dst_req & self.dst_ack):
            m.d[self.dst] += ack_toggle.eq(dst_req_toggle)
        return m
