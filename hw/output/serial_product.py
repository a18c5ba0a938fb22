"""The product of a sum, digit by digit, and a multiplier."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline

__all__ = ["SerialProduct"]


class SerialProduct(wiring.Component):
    """``product = (sum of digit n * 2^(bits * n) * multiplier + 2^30) >> 31``.

    The digits form a signed number of 32 bits. Each pair of bits selects a multiple of the
    multiplier, -2 to 2 times (Booth, radix 4). The multiples of a digit are added in a tree. Their
    total is added to a sum that shifts right. The product is valid a cycle after the total of the
    last digit, for one cycle.

    A negative multiple is the complement; the 1 that is missing enters the next adder as a carry.

    Parameters
    ----------
    bits : int
        Bits of a digit: a power of two, 2 or more.

    Attributes
    ----------
    digit : In, ``bits`` bits
    below : In, 1 bit
        The bit below ``digit``.
    first : In, 1 bit
        The total of the first digit is valid: `latency` - 1 cycles after that digit.
    multiplier : In, 31 bits
        Valid from the cycle after the first digit to the cycle after the last one.
    product : Out, signed 32 bits
    """

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({
            "digit": In(bits), "below": In(1), "first": In(1), "multiplier": In(31),
            "product": Out(signed(32)),
        })

    def latency(self):
        """Cycles from the last digit to the product."""
        return 3 + (self.bits // 2 - 1).bit_length()

    def elaborate(self, platform):
        m = Module()
        bits = Cat(self.below, self.digit)
        terms = [self._multiple(m, n, *bits[n : n + 3]) for n in range(0, self.bits, 2)]
        width = 2  # bits of the digit that a term stands for
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=True)
            terms = [self._added(m, n, width, *pair) for n, pair in enumerate(pairs)]
            width *= 2
        [(term, carry)] = terms
        high, last = Signal(signed(32), reset_less=True), Signal(reset_less=True)
        start = Mux(self.first, C(1 << 30, signed(32)), high)
        total = (Cat(1, start).as_signed() + Cat(carry, term).as_signed())[1 : self.bits + 33]
        m.d.sync += [high.eq(total[self.bits :].as_signed()), last.eq(total[self.bits - 1])]
        m.d.comb += self.product.eq(Cat(last, high))
        return m

    def _multiple(self, m, n, below, low, high):
        """The multiple of the multiplier for two bits, and its carry."""
        zero, double, negative = (
            Signal(name=f"{name}_{n}") for name in ("zero", "double", "negative")
        )
        all_equal = (high == low) & (low == below)
        m.d.sync += [
            zero.eq(all_equal), double.eq(low == below), negative.eq(high & ~all_equal),
        ]
        multiple = Signal(signed(33), name=f"multiple_{n}", reset_less=True)
        chosen = Mux(double, Cat(0, self.multiplier), self.multiplier)
        m.d.sync += multiple.eq(Cat(chosen, 0) ^ negative.replicate(33))
        with m.If(zero):
            m.d.sync += multiple.eq(0)
        return multiple, pipeline(m, negative, 1, f"carry_{n}")

    def _added(self, m, n, width, low, high):
        """``low + (high << width)`` of two terms; the carry of ``high`` enters here."""
        (low, carry), (high, high_carry) = low, high
        upper = Cat(1, low[width:]).as_signed() + Cat(high_carry, high).as_signed()
        total = Cat(low[:width], upper[1 : 32 + width]).as_signed()
        return (
            pipeline(m, total, 1, f"term_{width}_{n}"), pipeline(m, carry, 1, f"carry_{width}_{n}")
        )
