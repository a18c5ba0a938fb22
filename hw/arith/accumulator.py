"""The accumulator of an ECP5 leaf: what a sum starts from, or drains to, in its carry chain."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.carry import DRAIN, KEEP, chain

__all__ = ["Accumulator"]


class Accumulator(wiring.Component):
    """``sum <= (0 if clear else sum) + term``; folded, ``sum <= above if shift else sum + term``.

    One LUT a bit: the chain of the addition takes the other inputs as well. It adds in every cycle,
    so a ``term`` is 0 where there is none; and 0 it must be while ``shift``.

    Parameters
    ----------
    term, acc : shape
    folded : bool

    Attributes
    ----------
    term : In
    clear : In, unless folded
    shift, above : In, where folded
    sum : Out
    """

    def __init__(self, *, term, acc, folded=False):
        self.folded = folded
        orders = {"shift": In(1), "above": In(acc)} if folded else {"clear": In(1)}
        super().__init__({"term": In(term), **orders, "sum": Out(acc)})

    def elaborate(self, platform):
        m = Module()
        if platform is not None:
            m.d.sync += self.sum.eq(chain(m, *self._positions()))
        elif self.folded:
            m.d.sync += self.sum.eq(Mux(self.shift, self.above, self.sum + self.term))
        else:
            m.d.sync += self.sum.eq(Mux(self.clear, 0, self.sum) + self.term)
        return m

    def _positions(self):
        for n, bit in enumerate(self.sum):
            term = self.term[min(n, len(self.term) - 1)]
            if self.folded:
                yield DRAIN, bit, term, self.above[n], ~self.shift
            else:
                yield KEEP, term, bit, self.clear
