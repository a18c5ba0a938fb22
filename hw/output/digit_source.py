"""The digits of a sum that is shifted left, from the lowest on."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["DigitSource"]


class DigitSource(wiring.Component):
    """Digit ``n`` of ``acc << left``, modulo 2^32, `LATENCY` + n cycles after ``start``.

    The shift by whole digits delays the digits: zeros come first. The shift by the rest takes each
    digit from two neighbouring digits of ``acc``.

    Parameters
    ----------
    bits : int
        Bits of a digit: 2, 4 or 8.

    Attributes
    ----------
    start : In, 1 bit
        Starts are at least as many cycles apart as a sum has digits.
    acc : In, 32 bits
        Valid in the cycle after ``start`` and while its digits are sent.
    left : In, 5 bits
        Valid with ``start`` and in the next cycle.
    digit : Out, ``bits`` bits
    below : Out, 1 bit
        The bit below ``digit``: the highest bit of the digit before, 0 below the first digit.
    """

    LATENCY = 2

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({
            "start": In(1), "acc": In(32), "left": In(5), "digit": Out(bits), "below": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        bits, fine_bits = self.bits, ceil_log2(self.bits)
        index = Signal(signed(6 - fine_bits))  # of the next digit of acc; below 0: a zero
        first = Signal()  # the next digit is the first one
        digit, before = Signal(bits), Signal(bits - 1)  # two neighbouring digits of acc
        fine = Signal(fine_bits)
        m.d.sync += [
            first.eq(self.start),
            index.eq(Mux(self.start, -self.left[fine_bits:], index + 1)),
            digit.eq(self.acc.word_select(index[:-1], bits)),
            before.eq(digit[1:]), self.below.eq(self.digit[-1]),
        ]
        with m.If(index[-1]):
            m.d.sync += digit.eq(0)
        with m.If(first):
            m.d.sync += [before.eq(0), self.below.eq(0), fine.eq(self.left)]
        m.d.comb += self.digit.eq(Cat(before, digit) >> ~fine)
        return m
