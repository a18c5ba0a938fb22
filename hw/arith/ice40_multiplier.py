"""A signed multiplier in the logic of the iCE40: one carry chain for each bit, in two halves."""

from amaranth.hdl import Cat, Module, Shape, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_carry import ADD_MASKED, ADD_MASKED_INVERTED, chain

__all__ = ["HalvesMultiplier"]


class HalvesMultiplier(wiring.Component):
    """``low + (high << split) <= a * b``, one cycle later; each half of ``b`` has its own product.

    Each bit of ``b`` has a row, which adds ``a`` if the bit is 1. The partial sum shifts right by
    one bit from row to row. The last bit of ``b`` has a negative weight: its row subtracts, as
    ``h - a = ~(~h + a)``. The outputs are registered.

    Parameters
    ----------
    a, b : shape
        Signed.

    Attributes
    ----------
    a, b : In
        The factors.
    low : Out, signed
        ``a`` times the lower half of ``b``.
    high : Out, signed
        ``a`` times the upper half of ``b``.
    split : int
        Bits in the lower half of ``b``. That half is the larger one if ``b`` has an odd width,
        since the upper half needs more logic.
    """

    def __init__(self, *, a, b):
        a, b = (Shape.cast(shape).width for shape in (a, b))
        self.split = (b + 1) // 2
        super().__init__({
            "a": In(signed(a)), "b": In(signed(b)),
            "low": Out(signed(a + self.split)), "high": Out(signed(a + b - self.split)),
        })

    def elaborate(self, platform):
        m = Module()
        low, high = self.b[: self.split], self.b[self.split :]
        if platform is None:
            low, high = self.a * low, self.a * high.as_signed()
        else:
            low, high = self._rows(m, low), self._rows(m, high, negative=True)
        m.d.sync += [self.low.eq(low), self.high.eq(high)]
        return m

    def _rows(self, m, b, *, negative=False):
        """``a * b``; if ``negative``, the last bit of ``b`` has a negative weight."""
        a = self.a
        row = a.as_unsigned() & b[0].replicate(len(a))
        inverted = False  # whether the row is the complement of the partial sum
        bits = []
        for n in range(1, len(b)):
            bits.append(row[0] ^ inverted)
            shifted = Cat(row[1:], row[-1], row[-1])[: len(a) + 1]
            inverted = negative and n == len(b) - 2
            init = ADD_MASKED_INVERTED if negative and n >= len(b) - 2 else ADD_MASKED
            row = chain(m, init, b[n], shifted, Cat(a, a[-1]))
        return Cat(bits, row).as_signed()
