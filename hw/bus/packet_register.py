"""Packets: the result stream as AXI4-Stream has it, which no reset may break."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Status
from weft.hw.bus.csr_bank import Ended
from weft.hw.output.stream_packer import Result

__all__ = ["PacketRegister"]


class PacketRegister(wiring.Component):
    """``packets`` are ``results``; what stays on offer does so in a soft reset too.

    A packet that a soft reset cuts is ended by a word of zeros that is `last`, with the packet's
    tag and the status of an abort. So is what the core says in the word that ends an aborted or
    rejected job: zeros. ``ready`` of the results depends on no other input.

    Parameters
    ----------
    bytes_out : int

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    reset : In
        A soft reset: nothing is taken.
    packets : Out, stream of `weft.hw.output.stream_packer.Result`
    ended : Out, `weft.hw.bus.csr_bank.Ended`
        A job's last word has been taken; not one of before a soft reset.
    """

    def __init__(self, *, bytes_out):
        word = Result(bytes_out=bytes_out)
        super().__init__({
            "results": In(stream.Signature(word)), "reset": In(1),
            "packets": Out(stream.Signature(word)), "ended": Out(Ended),
        })

    def elaborate(self, platform):
        m = Module()
        o = self.packets
        last = Signal(init=1)  # of the latest word on offer: else a packet is open
        fresh = Signal()  # that word is of no time before a reset
        full = Signal()
        ready = Signal()
        kept, comes = Signal.like(o.payload, reset_less=True), Signal.like(o.payload)
        takes = self.results.valid & self.results.ready
        moves = ~o.valid | o.ready
        cut = (self.reset | ~fresh) & ~last
        m.d.comb += [
            self.results.ready.eq(ready & ~self.reset),
            comes.eq(self.results.payload),
        ]
        with m.If(self.results.payload.status != 0):
            m.d.comb += comes.data.eq(0)
        # `ready` is registered: what comes as `o` begins to wait is kept.
        m.d.sync += ready.eq(Mux(moves, ~self.reset, ~full & ~takes & ~cut & ~self.reset))
        with m.If(moves & cut):
            m.d.sync += [
                o.valid.eq(1), last.eq(1), fresh.eq(0),
                o.payload.data.eq(0), o.payload.status.eq(Status.ABORTED), o.payload.last.eq(1),
            ]
        with m.Elif(moves):
            m.d.sync += o.valid.eq(full | takes)
            with m.If(full | takes):
                chosen = data.View(kept.shape(), Mux(full, kept.as_value(), comes.as_value()))
                m.d.sync += [
                    o.payload.eq(chosen), last.eq(chosen.last), fresh.eq(1), full.eq(0),
                ]
        with m.Elif(takes):
            m.d.sync += [full.eq(1), kept.eq(comes)]
        with m.If(self.reset):
            m.d.sync += [full.eq(0), fresh.eq(0)]
            with m.If(moves & ~cut):
                m.d.sync += o.valid.eq(0)
        m.d.sync += [
            self.ended.valid.eq(o.valid & o.ready & last & fresh & ~self.reset),
            self.ended.tag.eq(o.payload.tag), self.ended.status.eq(o.payload.status),
        ]
        return m
