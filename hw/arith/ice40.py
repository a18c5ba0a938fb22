"""The MAC cells of the iCE40: in DSP blocks of the UltraPlus, or in logic."""

from amaranth.hdl import Module, Signal

from weft.hw.arith.ice40_accumulator import CarryChainAccumulator, DspAccumulator
from weft.hw.arith.ice40_multiplier import HalvesMultiplier
from weft.hw.arith.ice40_pair import PairMultiplier
from weft.hw.arith.products import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.delay import pipeline
from weft.mac_cells import MAC_CELLS

__all__ = [
    "Ice40FastInnerProductMac", "Ice40LogicFastInnerProductMac", "Ice40LogicPlainMac",
    "Ice40PlainMac",
]


class Ice40Mac(ProductsMac):
    """A `Mac` in DSP blocks or in logic, with the same latency.

    It has one of three structures:

    * One product, in DSP: a block with multiplier and accumulator.
    * Products of bytes, in DSP: a block for two products, which has three stages; a tree of adders,
      one stage a level; the sum. Products for which there is no block are in logic: the first rows
      of a product, its halves, and their sum are three stages, too.
    * Any products, in logic: their first rows; their halves; the tree, whose last level adds the
      halves; the sum.

    The products of each cycle go through all stages. Without a step (``en`` is 0) the sum keeps its
    value instead.
    """

    LATENCY = MAC_CELLS["plain_ice40up"].latency
    BLOCKS = True  # the device has DSP blocks

    def elaborate(self, platform):
        m = Module()
        factors = [
            [sum(parts[1:], parts[0]) for parts in self.factors(n)]
            for n in range(self.products(self.depth))
        ]
        structure = self._in_logic
        blocks = self.resource == "dsp" and self.BLOCKS and self.blocks != 0
        if blocks and len(factors) == 1:
            structure = self._in_block
        elif blocks and all(len(factor) <= 8 for pair in factors for factor in pair):
            structure = self._in_pairs
        m.submodules.accumulator = accumulator = structure(m, factors)
        m.d.comb += [
            accumulator.en.eq(pipeline(m, self.en, self.latency(self.depth) - 1, "en")),
            self.sum.eq(accumulator.sum),
        ]
        if self.folded:
            m.d.comb += [accumulator.shift.eq(self.shift), accumulator.above.eq(self.above)]
        else:
            m.d.comb += accumulator.clear.eq(self.clear)
        return m

    def _in_block(self, m, factors):
        """One product and its sum in a DSP block."""
        ((a, b),) = factors
        accumulator = DspAccumulator(a=a.shape(), b=b.shape(), folded=self.folded)
        m.d.comb += [accumulator.a.eq(a), accumulator.b.eq(b)]
        return accumulator

    def _in_pairs(self, m, factors):
        """Two products of bytes in each DSP block, the others and the sum in logic."""
        terms = []
        in_blocks = len(factors) if self.blocks is None else min(2 * self.blocks, len(factors))
        for n in range(0, in_blocks, 2):
            m.submodules[f"product_{n}"] = pair = PairMultiplier()
            for i, (a, b) in enumerate(factors[n : min(n + 2, in_blocks)]):
                m.d.comb += [pair.a[i].eq(a), pair.b[i].eq(b)]
                terms.append(pair.product[i])
        for n in range(in_blocks, len(factors)):
            product = self._multiplier(m, n, *factors[n])
            terms += self._level(m, [product.low, product.high << product.split])
        while len(terms) > 1:
            terms = self._level(m, terms)
        accumulator = CarryChainAccumulator(term=terms[0].shape(), folded=self.folded)
        m.d.comb += accumulator.term.eq(terms[0])
        return accumulator

    def _in_logic(self, m, factors):
        """Products and their sum in logic."""
        lows, highs = [], []
        for n, (a, b) in enumerate(factors):
            product = self._multiplier(m, n, a, b)
            lows.append(product.low)
            highs.append(product.high)
        while len(lows) > 1:
            lows, highs = (self._level(m, terms) for terms in (lows, highs))
        (term,) = self._level(m, [lows[0], highs[0] << product.split])
        accumulator = CarryChainAccumulator(term=term.shape(), folded=self.folded)
        m.d.comb += accumulator.term.eq(term)
        return accumulator

    def _multiplier(self, m, n, a, b):
        """The multiplier in logic for product ``n``."""
        m.submodules[f"product_{n}"] = product = HalvesMultiplier(a=a.shape(), b=b.shape())
        m.d.comb += [product.a.eq(a), product.b.eq(b)]
        return product

    @staticmethod
    def _level(m, terms):
        """A level of the tree: sums of two terms, one cycle later."""
        sums = []
        for n in range(0, len(terms), 2):
            value = sum(terms[n + 1 : n + 2], terms[n])
            sums.append(term := Signal(value.shape(), name="term", reset_less=True))
            m.d.sync += term.eq(value)
        return sums


class Ice40PlainMac(PlainProducts, Ice40Mac):
    """An iCE40UP MAC cell with plain products."""


class Ice40FastInnerProductMac(FastInnerProducts, Ice40Mac):
    """An iCE40UP MAC cell with fast inner products."""


class Ice40LogicPlainMac(Ice40PlainMac):
    """A MAC cell for an iCE40 without DSP blocks, with plain products."""

    BLOCKS = False


class Ice40LogicFastInnerProductMac(Ice40FastInnerProductMac):
    """A MAC cell for an iCE40 without DSP blocks, with fast inner products."""

    BLOCKS = False
