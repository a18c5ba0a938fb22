"""A skid: a stage of a stream whose ``valid``, payload and ``ready`` are all registers."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """``o`` is ``i`` a cycle later, a word a cycle; what comes as ``o`` begins to wait is kept.

    In a reset it takes nothing.

    Parameters
    ----------
    shape : shape

    Attributes
    ----------
    i : In, stream of ``shape``
    o : Out, stream of ``shape``
    """

    LATENCY = 1

    def __init__(self, shape):
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
        })

    def elaborate(self, platform):
        m = Module()
        ready = Signal()
        full = Signal()
        kept = Signal.like(self.i.payload, reset_less=True)
        moves = self.o.ready | ~self.o.valid
        comes = self.i.valid & ready
        m.d.comb += self.i.ready.eq(ready)
        m.d.sync += ready.eq(moves | (~full & ~comes))
        with m.If(moves):
            m.d.sync += full.eq(0)
            with m.If(full):
                m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(kept)]
            with m.Else():
                m.d.sync += [self.o.valid.eq(comes), self.o.payload.eq(self.i.payload)]
        with m.Elif(comes):
            m.d.sync += [full.eq(1), kept.eq(self.i.payload)]
        return m
