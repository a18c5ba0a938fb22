"""The accumulator of an ECP5 MAC cell: clear, drain and addition in one carry chain."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.carry import ADD_MASKED, ADD_OR_LOAD, chain

__all__ = ["Accumulator"]


class Accumulator(wiring.Component):
    """``sum <= (0 if clear else sum) + term``; folded, ``sum <= above if shift else sum + term``.

    One LUT a bit: the carry chain of the addition takes the other inputs too. It adds in every
    cycle, so ``term`` must be 0 in a cycle without a step, and in every cycle of ``shift``.

    Parameters
    ----------
    term, acc : shape
    folded : bool
        Whether results leave through the sums.

    Attributes
    ----------
    term : In, ``term``
    clear : In, 1 bit; unless folded
        Start from 0.
    shift : In, 1 bit; if folded
        Load ``above``.
    above : In, ``acc``; if folded
        The sum of the PE above; valid with ``shift``.
    sum : Out, ``acc``
        One cycle after its term.
    """

    def __init__(self, *, term, acc, folded=False):
        self.folded = folded
        control = {"shift": In(1), "above": In(acc)} if folded else {"clear": In(1)}
        super().__init__({"term": In(term), **control, "sum": Out(acc)})

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
        """The positions of the carry chain, from the lowest bit on."""
        for n, bit in enumerate(self.sum):
            term = self.term[min(n, len(self.term) - 1)]
            if self.folded:
                yield ADD_OR_LOAD, bit, term, self.above[n], ~self.shift
            else:
                yield ADD_MASKED, term, bit, self.clear
