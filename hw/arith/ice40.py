"""The leaves of the iCE40: all in a DSP block of the UltraPlus, or multiplied in logic."""

from amaranth.hdl import Module, Mux, Signal

from weft.hw.arith.ice40_accumulator import CarryChainAccumulator, DspAccumulator
from weft.hw.arith.ice40_multiplier import HalvesMultiplier
from weft.hw.arith.ice40_pair import PairMultiplier
from weft.hw.arith.products import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.delay import pipeline

__all__ = [
    "Ice40FastInnerProductMac", "Ice40LogicFastInnerProductMac", "Ice40LogicPlainMac",
    "Ice40PlainMac",
]


class Ice40Mac(ProductsMac):
    """A `Mac` of one product in a DSP block, of bytes in a block for two, or of any in logic.

    All are as late. Without a step its products are 0.

    The stages: the factors; the block. Of bytes: the factors; three of a block; a tree of adders, a
    level each; the sum. In logic: the factors; again, to be as late as blocks; the halves of the
    products; the tree, whose last level brings the halves together; the sum.
    """

    LATENCY = 1 + DspAccumulator.LATENCY
    BLOCKS = True  # there are some

    def elaborate(self, platform):
        m = Module()
        factors = []
        for n in range(self.products(self.depth)):
            values = [sum(parts[1:], parts[0]) for parts in self.factors(n)]
            factors.append([Signal(value.shape(), name="factor") for value in values])
            a, b = factors[-1]
            m.d.sync += [a.eq(Mux(self.en, values[0], 0)), b.eq(values[1])]
        make = self._in_logic
        blocks = self.dsp and self.BLOCKS
        if blocks and len(factors) == 1:
            make = self._in_block
        elif blocks and all(len(factor) <= 8 for pair in factors for factor in pair):
            make = self._in_pairs
        m.submodules.total = total = make(m, factors)
        m.d.comb += self.sum.eq(total.sum)
        if self.folded:
            m.d.comb += [total.shift.eq(self.shift), total.above.eq(self.above)]
        else:
            m.d.comb += total.clear.eq(self.clear)
        return m

    def _in_block(self, m, factors):
        ((a, b),) = factors
        total = DspAccumulator(a=a.shape(), b=b.shape(), folded=self.folded)
        m.d.comb += [total.a.eq(a), total.b.eq(b)]
        return total

    def _in_pairs(self, m, factors):
        terms = []
        for n in range(0, len(factors), 2):
            m.submodules[f"product_{n}"] = pair = PairMultiplier()
            for i, (a, b) in enumerate(factors[n : n + 2]):
                m.d.comb += [pair.a[i].eq(a), pair.b[i].eq(b)]
                terms.append(pair.product[i])
        while len(terms) > 1:
            terms = self._level(m, terms)
        total = CarryChainAccumulator(term=terms[0].shape(), folded=self.folded)
        m.d.comb += total.term.eq(terms[0])
        return total

    def _in_logic(self, m, factors):
        lows, highs = [], []
        for n, (a, b) in enumerate(factors):
            if self.BLOCKS:
                a, b = (pipeline(m, value, 1, "again") for value in (a, b))
            m.submodules[f"product_{n}"] = product = HalvesMultiplier(a=a.shape(), b=b.shape())
            m.d.comb += [product.a.eq(a), product.b.eq(b)]
            lows.append(product.low)
            highs.append(product.high)
        while len(lows) > 1:
            lows, highs = (self._level(m, terms) for terms in (lows, highs))
        (term,) = self._level(m, [lows[0], highs[0] << product.split])
        total = CarryChainAccumulator(term=term.shape(), folded=self.folded)
        m.d.comb += total.term.eq(term)
        return total

    @staticmethod
    def _level(m, terms):
        """Sums of two each, a cycle later."""
        done = []
        for n in range(0, len(terms), 2):
            value = sum(terms[n + 1 : n + 2], terms[n])
            done.append(term := Signal(value.shape(), name="term"))
            m.d.sync += term.eq(value)
        return done


class Ice40PlainMac(PlainProducts, Ice40Mac):
    """Plain products."""


class Ice40FastInnerProductMac(FastInnerProducts, Ice40Mac):
    """Fast inner products."""


class Ice40LogicPlainMac(Ice40PlainMac):
    """Where there are no DSP blocks: a cycle sooner."""

    LATENCY = Ice40PlainMac.LATENCY - 1
    BLOCKS = False


class Ice40LogicFastInnerProductMac(Ice40FastInnerProductMac):
    """Where there are no DSP blocks: a cycle sooner."""

    LATENCY = Ice40FastInnerProductMac.LATENCY - 1
    BLOCKS = False
