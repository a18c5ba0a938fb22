"""AMBA APB3: a slave that turns bus transfers into requests of the register bus."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.bus.register_bank import RegisterBus

__all__ = ["PINS", "Apb"]

PINS = {
    "paddr": In(12), "psel": In(1), "penable": In(1), "pwrite": In(1), "pwdata": In(32),
    "prdata": Out(32), "pready": Out(1), "pslverr": Out(1),
}  # fmt: skip


class Apb(wiring.Component):
    """A transfer has a setup cycle, and one access cycle or more: ``pready`` ends it.

    The request starts in the setup cycle, so a response in the next cycle adds no wait state. A
    transfer with an error ends with ``pslverr``: an address that is no multiple of 4 is one. Writes
    are of whole words. If a reset of the master alone removes ``psel`` before the end of the
    transfer, its response is dropped; the transfer may have had its effect, and the next one waits
    for that response. No output depends on an input in the same cycle.

    Attributes
    ----------
    paddr, psel, penable, pwrite, pwdata : In
    prdata, pready, pslverr : Out
    bus : Out, `RegisterBus`

    Source: ARM IHI 0024, AMBA APB Protocol Specification: APB3.
    """

    def __init__(self):
        super().__init__({**PINS, "bus": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        request, response = self.bus.request, self.bus.response
        pending = Signal()  # a request has no response yet
        with m.If(request.valid & request.ready):
            m.d.sync += pending.eq(1)
        with m.Elif(response.valid):
            m.d.sync += pending.eq(0)
        # A transfer stays in its access phase until its response: the master has given it up.
        dropped = Signal()
        m.d.sync += dropped.eq(pending & ~response.valid & (dropped | ~(self.psel & self.penable)))
        m.d.comb += [
            request.valid.eq(self.psel & ~pending),
            request.p.addr.eq(self.paddr[2:]),
            request.p.aligned.eq(~self.paddr[:2].any()),
            request.p.write.eq(self.pwrite),
            request.p.mask.eq(0b1111),
            request.p.data.eq(self.pwdata),
            self.prdata.eq(response.p.data),
            self.pready.eq(response.valid & ~dropped),
            self.pslverr.eq(response.valid & ~dropped & response.p.error),
        ]
        return m
