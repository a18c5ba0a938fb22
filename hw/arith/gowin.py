"""The MAC cells of the Gowin FPGAs: products in DSP blocks or logic, sums in logic."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal

from weft.hw.arith.mac import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.arith.multiplier import HalvedMultiplier, Multiplier
from weft.hw.delay import pipeline
from weft.mac_cells import MAC_CELLS

__all__ = ["GowinFastInnerProductMac", "GowinMultiplier", "GowinPlainMac"]

WIDTH = 9  # bits of an operand of the block


class GowinMultiplier(Multiplier):
    """A `Multiplier` in a MULT9X9, with the registers of its operands, pipeline and product.

    Parameters
    ----------
    a, b : shape
        At most 9 bits, signed.
    pipelined : bool
        As of `Multiplier`.

    Source: Gowin UG287, Gowin DSP User Guide: MULT9X9.
    """

    def _block(self, m):
        product = Signal(2 * WIDTH)
        m.d.comb += self.product.eq(product)
        m.submodules.block = Instance(
            "MULT9X9", p_AREG=Const(1), p_BREG=Const(1), p_PIPE_REG=Const(int(self.pipelined)),
            p_OUT_REG=Const(1), p_ASIGN_REG=Const(0), p_BSIGN_REG=Const(0), p_SOA_REG=Const(0),
            p_MULT_RESET_MODE="SYNC",
            i_A=_extended(Mux(self.zero, 0, self.a)), i_B=_extended(self.b),
            i_ASIGN=Const(1), i_BSIGN=Const(1), i_ASEL=Const(0), i_BSEL=Const(0),
            i_SIA=Const(0, WIDTH), i_SIB=Const(0, WIDTH),
            i_CE=self.en, i_CLK=ClockSignal(), i_RESET=Const(0), o_DOUT=product,
        )


def _extended(value):
    """A signed value of 9 bits."""
    return Cat(value, value[-1].replicate(WIDTH - len(value)))


class GowinMac(ProductsMac):
    """A `Mac` with a multiplier for each product, and a tree of adders.

    Place and route does not time a DSP block. So a register is on each side of it, with nothing
    between: before it are the factors, and after it the products.
    """

    LATENCY = MAC_CELLS["plain_gowin"].latency

    def elaborate(self, platform):
        m = Module()
        kind = GowinMultiplier if self.resource == "dsp" else HalvedMultiplier
        terms = []
        for n in range(self.products(self.depth)):
            x, y = (reduce(add, values) for values in self.factors(n))
            m.submodules[f"product_{n}"] = product = kind(a=x.shape(), b=y.shape())
            m.d.comb += [
                product.a.eq(pipeline(m, x, 1, "factor_a")),
                product.b.eq(pipeline(m, y, 1, "factor_b")),
            ]
            terms.append(pipeline(m, product.product, 1, "product"))
        while len(terms) > 1:
            rest = terms[len(terms) & ~1:]
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [_registered(m, value) for value in (*(x + y for x, y in pairs), *rest)]
        self._accumulate(m, terms[0])
        return m

    def _accumulate(self, m, term):
        """Add the term of a step: a clock enable costs less than a factor 0 without a step."""
        step = pipeline(m, self.en, self.latency(self.depth) - 1, "step")
        if self.folded:
            with m.If(step | self.shift):
                m.d.sync += self.sum.eq(Mux(self.shift, self.above, self.sum + term))
        else:
            with m.If(step):
                m.d.sync += self.sum.eq(Mux(self.clear, 0, self.sum) + term)


class GowinPlainMac(PlainProducts, GowinMac):
    """A Gowin MAC cell with plain products."""


class GowinFastInnerProductMac(FastInnerProducts, GowinMac):
    """A Gowin MAC cell with fast inner products."""


def _registered(m, value):
    """``value``, one cycle later."""
    return pipeline(m, value, 1, "term")
