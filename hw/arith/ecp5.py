"""The leaves of the ECP5: multiplied in a DSP block or in logic, summed in a carry chain."""

from functools import reduce

from amaranth.hdl import Module

from weft.hw.arith.accumulator import Accumulator
from weft.hw.arith.carry import ADD, chain
from weft.hw.arith.logic import LogicMultiplier
from weft.hw.arith.multiplier import Multiplier
from weft.hw.arith.products import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.delay import pipeline

__all__ = ["Ecp5FastInnerProductMac", "Ecp5PlainMac"]


class Ecp5Mac(ProductsMac):
    """A `Mac` of several products: a multiplier each, a tree of adders, an accumulator.

    Without a step the factors count as 0, and nothing is told to the stages that follow.
    """

    # A multiplier, and a register at its product, or at that of the tree; then the sum.
    LATENCY = LogicMultiplier.LATENCY + 1

    def elaborate(self, platform):
        m = Module()
        add = _plus if platform is None else _chained
        terms = []
        for n in range(self.products(self.depth)):
            x, y = (reduce(lambda x, y: add(m, x, y), values) for values in self.factors(n))
            kind = Multiplier if self.dsp else LogicMultiplier
            m.submodules[f"product_{n}"] = product = kind(a=x.shape(), b=y.shape())
            m.d.comb += [product.a.eq(x), product.b.eq(y), product.zero.eq(~self.en)]
            late = kind.LATENCY < LogicMultiplier.LATENCY
            terms.append(_later(m, product.product) if late else product.product)
        while len(terms) > 1:
            rest = terms[len(terms) & ~1:]
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [_later(m, value) for value in (*(add(m, x, y) for x, y in pairs), *rest)]
        m.submodules.total = total = Accumulator(
            term=terms[0].shape(), acc=self.ACC, folded=self.folded
        )
        m.d.comb += [total.term.eq(terms[0]), self.sum.eq(total.sum)]
        if self.folded:
            m.d.comb += [total.shift.eq(self.shift), total.above.eq(self.above)]
        else:
            m.d.comb += total.clear.eq(self.clear)
        return m


class Ecp5PlainMac(PlainProducts, Ecp5Mac):
    """Plain products."""


class Ecp5FastInnerProductMac(FastInnerProducts, Ecp5Mac):
    """Fast inner products."""


def _plus(m, x, y):
    return x + y


def _chained(m, x, y):
    width = max(len(x), len(y)) + 1
    return chain(m, *(
        (ADD, x[min(n, len(x) - 1)], y[min(n, len(y) - 1)]) for n in range(width)
    )).as_signed()


def _later(m, value):
    return pipeline(m, value, 1, "term")
