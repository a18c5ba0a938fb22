"""A request and acknowledge handshake between two clock domains."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["PulseHandshake"]


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
