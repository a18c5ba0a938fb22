"""The MAC cells of the ECP5: products in DSP blocks, block RAM or logic, sums in carry chains."""

from functools import reduce

from amaranth.hdl import Module

from weft.hw.arith.carry import ADD, Accumulator, chain
from weft.hw.arith.logic import LogicMultiplier, SquareMultiplier
from weft.hw.arith.mac import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.arith.multiplier import Multiplier
from weft.hw.delay import pipeline
from weft.mac_cells import MAC_CELLS

__all__ = ["Ecp5FastInnerProductMac", "Ecp5PlainMac"]

_MULTIPLIERS = {"dsp": Multiplier, "ram": SquareMultiplier, "logic": LogicMultiplier}


class Ecp5Mac(ProductsMac):
    """A `Mac` with a multiplier for each product, a tree of adders and an `Accumulator`.

    Without a step (``en`` is 0) the multipliers see a factor 0, so that all later stages add 0.

    A DSP block is a cycle faster than the other multipliers. So its factors have a register before
    it, which halves the wire from the operand registers to the block.
    """

    # A multiplier in logic, or a register and a DSP block; then the sum.
    LATENCY = MAC_CELLS["plain_ecp5"].latency
    SQUARES = True

    def elaborate(self, platform):
        m = Module()
        add = _plus if platform is None else _chained
        kind = _MULTIPLIERS[self.resource]
        terms = []
        for n in range(self.products(self.depth)):
            x, y = (reduce(lambda x, y: add(m, x, y), values) for values in self.factors(n))
            early = LogicMultiplier.LATENCY - kind.LATENCY
            a, b = pipeline(m, x, early, "factor_a"), pipeline(m, y, early, "factor_b")
            m.submodules[f"product_{n}"] = product = kind(a=a.shape(), b=b.shape())
            m.d.comb += [
                product.a.eq(a), product.b.eq(b),
                product.zero.eq(pipeline(m, ~self.en, early, "zero")),
            ]
            terms.append(product.product)
        while len(terms) > 1:
            rest = terms[len(terms) & ~1:]
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [_registered(m, value) for value in (*(add(m, x, y) for x, y in pairs), *rest)]
        m.submodules.accumulator = accumulator = Accumulator(
            term=terms[0].shape(), acc=self.ACC, folded=self.folded
        )
        m.d.comb += [accumulator.term.eq(terms[0]), self.sum.eq(accumulator.sum)]
        if self.folded:
            m.d.comb += [accumulator.shift.eq(self.shift), accumulator.above.eq(self.above)]
        else:
            m.d.comb += accumulator.clear.eq(self.clear)
        return m


class Ecp5PlainMac(PlainProducts, Ecp5Mac):
    """An ECP5 MAC cell with plain products."""


class Ecp5FastInnerProductMac(FastInnerProducts, Ecp5Mac):
    """An ECP5 MAC cell with fast inner products."""


def _plus(m, x, y):
    """``x + y``."""
    return x + y


def _chained(m, x, y):
    """``x + y`` in a carry chain."""
    width = max(len(x), len(y)) + 1
    return chain(m, *(
        (ADD, x[min(n, len(x) - 1)], y[min(n, len(y) - 1)]) for n in range(width)
    )).as_signed()


def _registered(m, value):
    """``value``, one cycle later."""
    return pipeline(m, value, 1, "term")
