"""A signed multiplier in the logic of the iCE40: one carry chain for each bit, in two halves."""

from amaranth.hdl import Cat, Module, Shape, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_carry import ADD_MASKED, ADD_MASKED_INVERTED, chain
from weft.hw.delay import pipeline

__all__ = ["HalvesMultiplier"]


class HalvesMultiplier(wiring.Component):
    """``low + (high << split) <= a * b``, LATENCY cycles later; each half of ``b`` has a product.

    Each bit of ``b`` has a row, which adds ``a`` if the bit is 1. The partial sum shifts right by
    one bit from row to row. The last bit of ``b`` has a negative weight: its row subtracts, as
    ``h - a = ~(~h + a)``. The first row of a half adds to nothing. A register follows the second
    row of a half, and the last one. The registers have no reset.

    Parameters
    ----------
    a, b : shape
        Signed; ``b`` has 6 bits or more.

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

    LATENCY = 2

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
            low, high = (
                pipeline(m, self.a * half, self.LATENCY, "product")
                for half in (low, high.as_signed())
            )
        else:
            low, high = (
                pipeline(m, self._rows(m, half, negative=half is high), 1, "product")
                for half in (low, high)
            )
        m.d.comb += [self.low.eq(low), self.high.eq(high)]
        return m

    def _rows(self, m, b, *, negative):
        """``a * b``; if ``negative``, the last bit of ``b`` has a negative weight."""
        a, count = self.a, len(b)
        row = a.as_unsigned() & b[0].replicate(len(a))
        inverted = False  # whether the row is the complement of the partial sum
        bits = []
        for n in range(1, count):
            if n == 2:
                a, b, row, bits = (
                    pipeline(m, a, 1, "a"), Cat(0, 0, pipeline(m, b[2:], 1, "b")),
                    pipeline(m, row, 1, "row"), [pipeline(m, Cat(bits), 1, "bits")],
                )
            bits.append(row[0] ^ inverted)
            shifted = Cat(row[1:], row[-1], row[-1])[: len(a) + 1]
            inverted = negative and n == count - 2
            init = ADD_MASKED_INVERTED if negative and n >= count - 2 else ADD_MASKED
            row = chain(m, init, b[n], shifted, Cat(a, a[-1]))
        return Cat(bits, row).as_signed()
