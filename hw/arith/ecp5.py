"""The MAC cells of the ECP5: products in DSP blocks, block RAM or logic, sums in carry chains."""

from functools import reduce

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.mac import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.arith.multiplier import Multiplier
from weft.hw.delay import pipeline
from weft.hw.fabrics.ecp5_primitives import (
    ADD,
    ADD_PRODUCTS,
    ADDRESS_BITS,
    AND,
    PORT_BITS,
    SUB_MASKED,
    SUB_PRODUCTS,
    Accumulator,
    chain,
    dp16kd,
)
from weft.latencies import LOGIC_MULTIPLIER
from weft.mac_cells import MAC_CELLS

__all__ = ["Ecp5FastInnerProductMac", "Ecp5PlainMac", "LogicMultiplier", "SquareMultiplier"]


class LogicMultiplier(wiring.Component):
    """``product <= a * b``, LATENCY cycles later; no reset clears the pipeline.

    Two bits of ``b`` make a row, ``a * (b[n] + 2 * b[n + 1])``. The last bit of ``b`` has a
    negative weight; if ``b`` has 9 bits, it has a row of its own, which is subtracted. The stages:
    the operands; the rows; the sum of the lower two rows and the sum of the others; the sum of
    both.

    Parameters
    ----------
    a, b : shape
        Signed; ``b`` has 8 or 9 bits.

    Attributes
    ----------
    zero : In, 1 bit
        Use 0 instead of ``a``.
    a : In, ``a``
    b : In, ``b``
    product : Out, as wide as both factors together
        LATENCY cycles after its factors.
    """

    LATENCY = LOGIC_MULTIPLIER

    def __init__(self, *, a, b):
        super().__init__({
            "zero": In(1), "a": In(a), "b": In(b), "product": Out((Signal(a) * Signal(b)).shape()),
        })

    def elaborate(self, platform):
        m = Module()
        a = Signal.like(self.a, name="i_a", reset_less=True)
        b = Signal.like(self.b, name="i_b", reset_less=True)
        m.d.sync += [a.eq(Mux(self.zero, 0, self.a)), b.eq(self.b)]
        if platform is None:
            m.d.comb += self.product.eq(pipeline(m, a * b, self.LATENCY - 1, "product"))
            return m
        m.d.comb += self.product.eq(self._product(m, a, b))
        return m

    def _product(self, m, a, b):
        """The product of the registered operands, LATENCY - 1 cycles later."""
        top = b[8:]
        rows = [
            pipeline(m, self._row(m, a, b[n : n + 2], negative=n + 2 == len(b)), 1, f"r_{n}")
            for n in range(0, 8, 2)
        ]
        if len(top):
            r_a, r_top = pipeline(m, a, 1, "r_a"), pipeline(m, top, 1, "r_top")
            rows[3] = self._minus_top(m, rows[3], r_a, r_top)
        low = pipeline(m, _sum(m, rows[0], rows[1], 2, len(a) + 4), 1, "s_low")
        high = pipeline(m, _sum(m, rows[2], rows[3], 2, len(a) + 4 + len(top)), 1, "s_high")
        return pipeline(m, _sum(m, low, high, 4, len(self.product)), 1, "o_product")

    @staticmethod
    def _row(m, a, b, *, negative=False):
        """``a * (b[0] + 2 * b[1])``; or ``a * (b[0] - 2 * b[1])``, where ``-a`` is ``~a + 1``."""
        rest = [
            (SUB_PRODUCTS if negative else ADD_PRODUCTS, _bit(a, n), b[0], _bit(a, n - 1), b[1])
            for n in range(1, len(a) + 2)
        ]
        if negative:
            first, carry = (ADD_PRODUCTS, a[0], b[0], b[1], b[1]), b[1]
        else:
            first, carry = (AND, a[0], b[0]), 0
        return chain(m, first, *rest, carry=carry).as_signed()

    @staticmethod
    def _minus_top(m, high, a, top):
        """``high - 4 * a * top``."""
        rest = chain(m, *(
            (SUB_MASKED, _bit(high, n), _bit(a, n - 2), top) for n in range(2, len(a) + 3)
        ), carry=1)
        return Cat(high[:2], rest).as_signed()


def _sum(m, low, high, places, width):
    """``low + (high << places)``, as ``width`` bits."""
    rest = chain(m, *(
        (ADD, _bit(low, n), _bit(high, n - places)) for n in range(places, width)
    ))
    return Cat(low[:places], rest).as_signed()


def _bit(value, n):
    """Bit ``n`` of a signed value, sign-extended."""
    return value[min(n, len(value) - 1)]


_BITS = 10  # of a sum of two factors; the block has 1,024 words of 18 bits
_TABLE = [n * n // 4 for n in (*range(1 << _BITS - 1), *range(-(1 << _BITS - 1), 0))]


class SquareMultiplier(LogicMultiplier):
    """A `LogicMultiplier` with the same ports and the same latency.

    ``a * b = q(a + b) - q(a - b)`` with ``q(n) = n * n // 4``. The result is exact, because
    ``a + b`` and ``a - b`` are both even or both odd. A block RAM holds ``q``, and its two ports
    read both values in a cycle. The stages: the operands; their sum and their difference, in the
    address registers of the block; both squares, in its output registers; their difference.

    Parameters
    ----------
    a, b : shape
        Signed, at most 9 bits.
    """

    def _product(self, m, a, b):
        plus, minus = self._squares(m, a, b)
        difference = chain(m, *(
            (SUB_MASKED, plus[n], minus[n], Const(1)) for n in range(len(self.product))
        ), carry=1)
        return pipeline(m, difference.as_signed(), 1, "o_product")

    @staticmethod
    def _squares(m, a, b):
        """``q(a + b)`` and ``q(a - b)``, two cycles later."""
        bits = [(a[min(n, len(a) - 1)], b[min(n, len(b) - 1)]) for n in range(_BITS)]
        addresses = {
            "A": chain(m, *((ADD, *pair) for pair in bits)),
            "B": chain(m, *((SUB_MASKED, *pair, Const(1)) for pair in bits), carry=1),
        }
        ports = {f"i_WE{port}": Const(0) for port in "AB"}
        squares = {port: Signal(PORT_BITS, name=f"square_{port}") for port in "AB"}
        for port, address in addresses.items():
            below = Const(0, ADDRESS_BITS - _BITS)
            ports |= {f"i_AD{port}{n}": bit for n, bit in enumerate(Cat(below, address))}
            ports |= {f"i_DI{port}{n}": Const(0) for n in range(PORT_BITS)}
            ports |= {f"o_DO{port}{n}": bit for n, bit in enumerate(squares[port])}
        m.submodules.block = dp16kd(ports, width_a=PORT_BITS, width_b=PORT_BITS, table=_TABLE)
        return squares["A"], squares["B"]


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
