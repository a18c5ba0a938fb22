"""A signed multiplier in the logic of the iCE40: a row of cells a bit, in two halves."""

from amaranth.hdl import Cat, Module, Shape, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_carry import PART, PART_NOT, chain

__all__ = ["HalvesMultiplier"]


class HalvesMultiplier(wiring.Component):
    """``low + (high << split) <= a * b``, a cycle later: each half of ``b`` by itself.

    A row adds ``a`` or not, as its bit of ``b`` says; what it adds to has lost its lowest bit. The
    last bit of ``b`` counts less than nothing: ``h - a = ~(~h + a)``. Registers lie behind the
    rows.

    Parameters
    ----------
    a, b : shape
        Signed.

    Attributes
    ----------
    a, b : In
    low, high : Out
    split : int
        Bits of ``b`` in the lower half: the greater one, as the higher one has more to do.
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
            low, high = self._rows(m, low), self._rows(m, high, away=True)
        m.d.sync += [self.low.eq(low), self.high.eq(high)]
        return m

    def _rows(self, m, b, *, away=False):
        """``a * b``; the last bit of ``b`` counts less than nothing where ``away``."""
        a = self.a
        row = a.as_unsigned() & b[0].replicate(len(a))
        turned = False  # whether the row is the complement
        done = []
        for n in range(1, len(b)):
            done.append(row[0] ^ turned)
            before = Cat(row[1:], row[-1], row[-1])[: len(a) + 1]
            turned = away and n == len(b) - 2
            init = PART_NOT if away and n >= len(b) - 2 else PART
            row = chain(m, init, b[n], before, Cat(a, a[-1]))
        return Cat(done, row).as_signed()
