"""The leaves of the ECP5: multiplied in a DSP block or in logic, summed in a carry chain."""

from amaranth.hdl import Module, Signal
from amaranth.utils import ceil_log2

from weft.hw.arith.accumulator import Accumulator
from weft.hw.arith.carry import ADD, chain
from weft.hw.arith.logic import LogicMultiplier
from weft.hw.arith.mac import Mac
from weft.hw.arith.multiplier import Multiplier

__all__ = ["Ecp5FastInnerProductMac", "Ecp5PlainMac"]


class Ecp5Mac(Mac):
    """A `Mac` of several products: a multiplier each, a tree of adders, an accumulator.

    Without a step the factors count as 0, and nothing is told to the stages that follow.
    """

    # A multiplier, and a register at its product, or at that of the tree; then the sum.
    LATENCY = LogicMultiplier.LATENCY + 1

    @classmethod
    def products(cls, depth):
        """How many there are in a step."""
        raise NotImplementedError

    @classmethod
    def latency(cls, depth):
        return cls.LATENCY + ceil_log2(cls.products(depth))

    def factors(self, m, add, n):
        """Those of product ``n``; ``add(m, x, y)`` is the sum of two numbers."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        add = _plus if platform is None else _chained
        terms = []
        for n in range(self.products(self.depth)):
            x, y = self.factors(m, add, n)
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


class Ecp5PlainMac(Ecp5Mac):
    """``dot(a, b) = sum(a[d] * b[d])``, a multiplier each."""

    @classmethod
    def products(cls, depth):
        return depth

    def factors(self, m, add, n):
        return self.a[n], self.b[n]


class Ecp5FastInnerProductMac(Ecp5Mac):
    """`weft.hw.arith.fip.FastInnerProductMac`, a multiplier for two pairs."""

    CORRECTED = True

    @classmethod
    def products(cls, depth):
        return depth // 2

    def factors(self, m, add, n):
        d = 2 * n
        return add(m, self.a[d], self.b[d + 1]), add(m, self.a[d + 1], self.b[d])


def _plus(m, x, y):
    return x + y


def _chained(m, x, y):
    width = max(len(x), len(y)) + 1
    return chain(m, *(
        (ADD, x[min(n, len(x) - 1)], y[min(n, len(y) - 1)]) for n in range(width)
    )).as_signed()


def _later(m, value):
    register = Signal(value.shape(), name="term", reset_less=True)
    m.d.sync += register.eq(value)
    return register
