"""The pace of tiles: space for their results, and the cycles in which the array drains."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DrainPace"]


class DrainPace(wiring.Component):
    """Tells when a tile may end: ``cycles`` after the tile before, and with a credit.

    Parameters
    ----------
    cycles : int
        Cycles in which the array drains a tile.
    credits : int
        Tiles that the result buffer holds.

    Attributes
    ----------
    may_drain : Out, 1 bit
        A tile may end in this cycle.
    drain : In, 1 bit
        Pulse: a tile ends in this cycle.
    release : In, 1 bit
        Pulse: the results of a tile have left the result buffer.
    """

    def __init__(self, *, cycles, credits):
        self.cycles = cycles
        self.credits = credits
        super().__init__({"may_drain": Out(1, init=1), "drain": In(1), "release": In(1)})

    def elaborate(self, platform):
        m = Module()
        credit_count = Signal(range(self.credits + 1), init=self.credits)
        cycles_left = Signal(range(self.cycles))
        m.d.sync += credit_count.eq(credit_count - self.drain + self.release)
        with m.If(self.drain):
            m.d.sync += [
                cycles_left.eq(self.cycles - 1),
                self.may_drain.eq(((credit_count > 1) | self.release) & (self.cycles == 1)),
            ]
        with m.Else():
            m.d.sync += [
                cycles_left.eq(cycles_left - cycles_left.any()),
                self.may_drain.eq((credit_count.any() | self.release) & ~cycles_left[1:].any()),
            ]
        return m
