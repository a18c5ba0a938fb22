"""A register stage of a stream that registers ``valid``, payload and ``ready``."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """``o`` is ``i`` one cycle later, at one word a cycle.

    ``i.ready`` is a register: a word that arrives in the cycle in which ``o`` stalls is kept in a
    second register. In reset ``i.ready`` is 0. It is not `amaranth.lib.fifo.SyncFIFOBuffered`,
    which needs a memory.

    Parameters
    ----------
    shape : shape
        Shape of a word.

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
        skid_valid = Signal()
        word, skid = (Signal.like(self.i.payload, reset_less=True) for _ in range(2))
        advance = self.o.ready | ~self.o.valid
        i_fire = self.i.valid & ready
        m.d.comb += [self.i.ready.eq(ready), self.o.payload.eq(word)]
        m.d.sync += ready.eq(advance | (~skid_valid & ~i_fire))
        with m.If(advance):
            m.d.sync += skid_valid.eq(0)
            with m.If(skid_valid):
                m.d.sync += [self.o.valid.eq(1), word.eq(skid)]
            with m.Else():
                m.d.sync += [self.o.valid.eq(i_fire), word.eq(self.i.payload)]
        with m.Elif(i_fire):
            m.d.sync += [skid_valid.eq(1), skid.eq(self.i.payload)]
        return m
