"""The leaves of the iCE40: all in a DSP block of the UltraPlus, or multiplied in logic."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.utils import ceil_log2

from weft.hw.arith.ice40_multiplier import HalvesMultiplier
from weft.hw.arith.ice40_pair import PairMultiplier
from weft.hw.arith.ice40_sum import BlockSum, ChainSum
from weft.hw.arith.mac import Mac
from weft.hw.post.delay import delayed

__all__ = [
    "Ice40FastInnerProductMac", "Ice40LogicFastInnerProductMac", "Ice40LogicPlainMac",
    "Ice40PlainMac",
]


class Ice40Mac(Mac):
    """A `Mac` of one product in a DSP block, of bytes in a block for two, or of any in logic.

    All are as late. Without a step its products are 0.

    The stages: the factors; the block. Of bytes: the factors; three of a block; a tree of adders, a
    level each; the sum. In logic: the factors; again, to be as late as blocks; the halves of the
    products; the tree, whose last level brings the halves together; the sum.
    """

    LATENCY = 1 + BlockSum.LATENCY
    BLOCKS = True  # there are some

    @classmethod
    def products(cls, depth):
        """How many there are in a step."""
        raise NotImplementedError

    @classmethod
    def latency(cls, depth):
        return cls.LATENCY + ceil_log2(cls.products(depth))

    def factors(self, n):
        """Those of product ``n``: for each the values that it is the sum of."""
        raise NotImplementedError

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
        total = BlockSum(a=a.shape(), b=b.shape(), folded=self.folded)
        m.d.comb += [total.a.eq(a), total.b.eq(b)]
        return total

    def _in_pairs(self, m, factors):
        terms = []
        for n in range(0, len(factors), 2):
            m.submodules[f"product_{n}"] = pair = PairMultiplier()
            for (a, b), *values in zip(factors[n : n + 2], pair.a, pair.b, strict=False):
                m.d.comb += [value.eq(factor) for value, factor in zip(values, (a, b), strict=True)]
            terms += [pair.product[i] for i in range(len(factors[n : n + 2]))]
        while len(terms) > 1:
            terms = self._level(m, terms)
        total = ChainSum(term=terms[0].shape(), folded=self.folded)
        m.d.comb += total.term.eq(terms[0])
        return total

    def _in_logic(self, m, factors):
        lows, highs = [], []
        for n, (a, b) in enumerate(factors):
            if self.BLOCKS:
                a, b = (delayed(m, value, 1, "again") for value in (a, b))
            m.submodules[f"product_{n}"] = product = HalvesMultiplier(a=a.shape(), b=b.shape())
            m.d.comb += [product.a.eq(a), product.b.eq(b)]
            lows.append(product.low)
            highs.append(product.high)
        while len(lows) > 1:
            lows, highs = (self._level(m, terms) for terms in (lows, highs))
        (term,) = self._level(m, [lows[0], highs[0] << product.split])
        total = ChainSum(term=term.shape(), folded=self.folded)
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


class Ice40PlainMac(Ice40Mac):
    """``dot(a, b) = sum(a[d] * b[d])``, a multiplier each."""

    @classmethod
    def products(cls, depth):
        return depth

    def factors(self, n):
        return [self.a[n]], [self.b[n]]


class Ice40FastInnerProductMac(Ice40Mac):
    """`weft.hw.arith.fip.FastInnerProductMac`, a multiplier for two pairs."""

    CORRECTED = True

    @classmethod
    def products(cls, depth):
        return depth // 2

    def factors(self, n):
        d = 2 * n
        return [self.a[d], self.b[d + 1]], [self.a[d + 1], self.b[d]]


class Ice40LogicPlainMac(Ice40PlainMac):
    """Where there are no DSP blocks: a cycle sooner."""

    LATENCY = Ice40PlainMac.LATENCY - 1
    BLOCKS = False


class Ice40LogicFastInnerProductMac(Ice40FastInnerProductMac):
    """Where there are no DSP blocks: a cycle sooner."""

    LATENCY = Ice40FastInnerProductMac.LATENCY - 1
    BLOCKS = False
