"""Delay lines at the edges of the array: operands of one step enter as a diagonal wavefront."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skew"]


class Skew(wiring.Component):
    """``o[n]`` is ``i[n]``, ``delays[n]`` cycles later.

    Parameters
    ----------
    shape : shape-like
        Shape of one element.
    delays : list of int

    Attributes
    ----------
    i : In, ``len(delays)`` elements
    o : Out, ``len(delays)`` elements
    """

    def __init__(self, *, shape, delays):
        self.delays = delays
        layout = data.ArrayLayout(shape, len(delays))
        super().__init__({"i": In(layout), "o": Out(layout)})

    def elaborate(self, platform):
        m = Module()
        for n, delay in enumerate(self.delays):
            value = self.i[n]
            for stage in range(delay):
                register = Signal.like(value, name=f"lane_{n}_{stage}")
                m.d.sync += register.eq(value)
                value = register
            m.d.comb += self.o[n].eq(value)
        return m
