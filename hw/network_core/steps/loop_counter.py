"""A loop counter, which tells the last turn a turn ahead."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LoopCounter"]


class LoopCounter(wiring.Component):
    """``for turn in range(count)``: ``last`` is a register, with no comparison behind it.

    ``advance`` in the last turn begins the first turn of the next loop, as ``restart`` does in any
    turn. ``count`` must be stable from ``restart`` on.

    Parameters
    ----------
    width : int
        Bits of ``count``.

    Attributes
    ----------
    count : In, ``width`` bits
        Turns of a loop: 1 or more.
    restart : In, 1 bit
        Begins a loop, also before the first one.
    advance : In, 1 bit
        Ends a turn.
    last : Out, 1 bit
        The turn is the last one of its loop.
    """

    def __init__(self, width):
        super().__init__({
            "count": In(width), "restart": In(1), "advance": In(1), "last": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        turns_left = Signal.like(self.count, reset_less=True)  # after this one
        with m.If(self.restart | (self.advance & self.last)):
            m.d.sync += [turns_left.eq(self.count - 1), self.last.eq(self.count == 1)]
        with m.Elif(self.advance):
            m.d.sync += [turns_left.eq(turns_left - 1), self.last.eq(turns_left == 1)]
        return m
