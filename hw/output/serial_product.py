"""The product of a sum, digit by digit, and a multiplier."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline

__all__ = ["SerialProduct"]

_UPPER = 14  # bits of the upper half of a sum


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
        start = Signal(signed(32 + self.bits))
        total = self._sum(m, start, term, carry, "total")
        m.d.comb += [
            start.eq(Mux(self.first, 1 << 30, total[self.bits :].as_signed())),
            self.product.eq(total[self.bits - 1 :]),
        ]
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
        upper = self._sum(m, high, low[width:].as_signed(), high_carry, f"term_{width}_{n}")
        return (
            Cat(pipeline(m, low[:width], 1, f"low_{width}_{n}"), upper).as_signed(),
            pipeline(m, carry, 1, f"carry_{width}_{n}"),
        )

    def _sum(self, m, a, b, carry, name):
        """``a + b + carry``, a cycle later, as wide as the wider one of ``a`` and ``b``.

        The sum has two halves, for short carry chains. The upper half is added with and without a
        carry from the lower half; the carry selects one of both in the next cycle.
        """
        terms = [Signal(signed(max(len(a), len(b))), name=f"{name}_{part}") for part in "ab"]
        m.d.comb += [terms[0].eq(a), terms[1].eq(b)]
        a, b = terms
        half = len(a) - _UPPER
        lower = Signal(half, name=f"{name}_lower", reset_less=True)
        without_carry, with_carry = (
            Signal(_UPPER, name=f"{name}_{case}", reset_less=True)
            for case in ("without_carry", "with_carry")
        )
        # The inverter is the LUT that takes a carry into the cell of a register of an iCE40.
        no_carry = Signal(name=f"{name}_no_carry", reset_less=True)
        m.d.sync += [
            Cat(lower, no_carry).eq((Cat(1, a[:half]) + Cat(carry, b[:half]))[1:] ^ (1 << half)),
            without_carry.eq(a[half:] + b[half:]),
            with_carry.eq((Cat(1, a[half:]) + Cat(1, b[half:]))[1:]),
        ]
        return Cat(lower, Mux(no_carry, without_carry, with_carry)).as_signed()
