"""Wishbone B4: a slave that turns bus cycles into requests of the register bus."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.bus.register_bank import RegisterBus

__all__ = ["Wishbone", "pins"]


def pins(pipelined):
    """The pins of the bus; addresses count 32-bit words."""
    found = {
        "cyc_i": In(1), "stb_i": In(1), "we_i": In(1), "adr_i": In(10), "sel_i": In(4),
        "dat_i": In(32), "dat_o": Out(32), "ack_o": Out(1), "err_o": Out(1),
    }
    return found | ({"stall_o": Out(1)} if pipelined else {})


class Wishbone(wiring.Component):
    """A classic access takes two clocks or more, a pipelined access takes one.

    An access with an error is answered by ``err_o``. If the master ends the cycle before the
    answer, the answer is dropped, even if a new cycle began meanwhile; the access may have had its
    effect. No output depends on an input in the same clock.

    Parameters
    ----------
    pipelined : bool
        Pipelined cycles instead of classic cycles.

    Attributes
    ----------
    cyc_i, stb_i, we_i, adr_i, sel_i, dat_i : In
    dat_o, ack_o, err_o : Out
    stall_o : Out; only if pipelined
    bus : Out, `RegisterBus`

    Source: OpenCores, WISHBONE B4: classic (3.2) and pipelined (3.1.3.2) cycles.
    """

    def __init__(self, *, pipelined):
        self.pipelined = pipelined
        super().__init__({**pins(pipelined), "bus": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        request, response = self.bus.request, self.bus.response
        pending = Signal()  # a request has no response yet
        aborted = Signal()  # the master ended the cycle of that request
        strobe = self.cyc_i & self.stb_i
        # A classic strobe stays high until the answer: it must not start another request.
        m.d.comb += request.valid.eq(strobe if self.pipelined else strobe & ~pending)
        if self.pipelined:
            m.d.comb += self.stall_o.eq(~request.ready)
        with m.If(request.valid & request.ready):
            m.d.sync += [pending.eq(1), aborted.eq(0)]
        with m.Elif(response.valid):
            m.d.sync += [pending.eq(0), aborted.eq(0)]
        with m.Elif(pending & ~self.cyc_i):
            m.d.sync += aborted.eq(1)
        m.d.comb += [
            request.p.addr.eq(self.adr_i), request.p.aligned.eq(1),
            request.p.write.eq(self.we_i),
            request.p.mask.eq(self.sel_i),
            request.p.data.eq(self.dat_i),
            self.dat_o.eq(response.p.data),
            self.ack_o.eq(response.valid & ~aborted & ~response.p.error),
            self.err_o.eq(response.valid & ~aborted & response.p.error),
        ]
        return m
