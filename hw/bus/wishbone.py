"""Wishbone B4: a slave that turns cycles, classic or pipelined, into accesses of the port."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.bus.register_bus import RegisterBus

__all__ = ["Wishbone", "pins"]


def pins(pipelined):
    """The members of the bus; addresses count words."""
    found = {
        "cyc_i": In(1), "stb_i": In(1), "we_i": In(1), "adr_i": In(10), "sel_i": In(4),
        "dat_i": In(32), "dat_o": Out(32), "ack_o": Out(1), "err_o": Out(1),
    }
    return found | ({"stall_o": Out(1)} if pipelined else {})


class Wishbone(wiring.Component):
    """Cycles of a Wishbone bus: a classic one takes two clocks or more, a pipelined one a clock.

    Refused accesses are answered by ``err_o``. The answer to an access whose cycle was given up is
    swallowed, whatever began meanwhile; the access itself may have had its effect. No output
    depends on an input in the same clock.

    Parameters
    ----------
    pipelined : bool

    Attributes
    ----------
    cyc_i, stb_i, we_i, adr_i, sel_i, dat_i : In
    dat_o, ack_o, err_o : Out
    stall_o : Out
        Of a pipelined one.
    port : Out, `RegisterBus`

    Source: OpenCores, WISHBONE B4: classic (3.2) and pipelined (3.1.3.2) cycles.
    """

    def __init__(self, *, pipelined):
        self.pipelined = pipelined
        super().__init__({**pins(pipelined), "port": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        access, answer = self.port.access, self.port.answer
        pending = Signal()  # an access without an answer
        given_up = Signal()  # ... and without anybody who waits for it
        asks = self.cyc_i & self.stb_i
        # A classic strobe stays for its answer: it must not ask again in that clock.
        m.d.comb += access.valid.eq(asks if self.pipelined else asks & ~pending)
        if self.pipelined:
            m.d.comb += self.stall_o.eq(~access.ready)
        with m.If(access.valid & access.ready):
            m.d.sync += [pending.eq(1), given_up.eq(0)]
        with m.Elif(answer.valid):
            m.d.sync += [pending.eq(0), given_up.eq(0)]
        with m.Elif(pending & ~self.cyc_i):
            m.d.sync += given_up.eq(1)
        m.d.comb += [
            access.p.address.eq(self.adr_i),
            access.p.write.eq(self.we_i),
            access.p.mask.eq(self.sel_i),
            access.p.data.eq(self.dat_i),
            self.dat_o.eq(answer.p.data),
            self.ack_o.eq(answer.valid & ~given_up & ~answer.p.refused),
            self.err_o.eq(answer.valid & ~given_up & answer.p.refused),
        ]
        return m
