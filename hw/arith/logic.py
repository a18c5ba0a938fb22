"""A signed multiplier in the logic of the ECP5: two partial products a row, a row a carry chain."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.carry import ADD, AND, PAIR, PAIR_AWAY, PART_AWAY, chain
from weft.hw.delay import pipeline

__all__ = ["LogicMultiplier"]


class LogicMultiplier(wiring.Component):
    """``product <= a * b``, LATENCY cycles later; no reset touches what is under way.

    Each two bits of ``b`` make a row, ``a * (b[n] + 2 * b[n + 1])``; its last bit counts less than
    nothing, in a row of its own where there are nine. The stages: the operands; the rows; a sum of
    the lower two and one of the others; the sum of these.

    Parameters
    ----------
    a, b : shape
        Signed; ``b`` of 8 or 9 bits.

    Attributes
    ----------
    zero : In
        ``a`` counts as 0.
    a, b : In
    product : Out
    """

    LATENCY = 4

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
        top = b[8:]
        rows = [
            pipeline(m, self._row(m, a, b[n : n + 2], away=n + 2 == len(b)), 1, f"r_{n}")
            for n in range(0, 8, 2)
        ]
        if len(top):
            rows[3] = self._less(m, rows[3], pipeline(m, a, 1, "r_a"), pipeline(m, top, 1, "r_top"))
        low = pipeline(m, _total(m, rows[0], rows[1], 2, len(a) + 4), 1, "t_low")
        high = pipeline(m, _total(m, rows[2], rows[3], 2, len(a) + 4 + len(top)), 1, "t_high")
        product = pipeline(m, _total(m, low, high, 4, len(self.product)), 1, "s_product")
        m.d.comb += self.product.eq(product)
        return m

    @staticmethod
    def _row(m, a, b, *, away=False):
        """``a * (b[0] + 2 * b[1])``; or ``a * (b[0] - 2 * b[1])``, as ``-a`` is ``~a + 1``."""
        rest = [
            (PAIR_AWAY if away else PAIR, _bit(a, n), b[0], _bit(a, n - 1), b[1])
            for n in range(1, len(a) + 2)
        ]
        if away:
            first, carry = (PAIR, a[0], b[0], b[1], b[1]), b[1]
        else:
            first, carry = (AND, a[0], b[0]), 0
        return chain(m, first, *rest, carry=carry).as_signed()

    @staticmethod
    def _less(m, high, a, top):
        """``high - 4 * a * top``."""
        rest = chain(m, *(
            (PART_AWAY, _bit(high, n), _bit(a, n - 2), top) for n in range(2, len(a) + 3)
        ), carry=1)
        return Cat(high[:2], rest).as_signed()


def _total(m, low, high, places, width):
    """``low + (high << places)``, of ``width`` bits."""
    rest = chain(m, *(
        (ADD, _bit(low, n), _bit(high, n - places)) for n in range(places, width)
    ))
    return Cat(low[:places], rest).as_signed()


def _bit(value, n):
    """Bit ``n`` of a signed value, however wide."""
    return value[min(n, len(value) - 1)]
