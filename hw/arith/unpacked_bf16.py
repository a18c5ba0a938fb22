"""Unpacked BF16 operands: normalized, with flags for zeros, infinities and NaNs."""

from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.latencies import UNPACKER

__all__ = ["Bf16Unpacker", "FlushingBf16Unpacker", "UnpackedBf16"]


class UnpackedBf16(data.Struct):
    """``(-1)**sign * (128 + fraction) / 128 * 2**(exponent - 127)``, unless a flag is set.

    The exponent and the fraction of a zero, an infinity or a NaN are undefined.
    """

    fraction: 7
    exponent: signed(9)  # 1..254, and -6..0 for a subnormal number
    sign: 1
    zero: 1
    special: 1  # an infinity or a NaN
    nan: 1


class Bf16Unpacker(wiring.Component):
    """Unpacks a bfloat16 to an `UnpackedBf16`, LATENCY cycles later.

    It normalizes subnormal numbers: once at the array's edge, not in every PE.

    Attributes
    ----------
    i : In, 16 bits
        A bfloat16.
    o : Out, `UnpackedBf16`
        LATENCY cycles after ``i``.
    """

    LATENCY = UNPACKER
    FLUSH = False

    def __init__(self):
        super().__init__({"i": In(16), "o": Out(UnpackedBf16)})

    def elaborate(self, platform):
        m = Module()
        fraction, exponent, sign = self.i[:7], self.i[7:15], self.i[15]
        tiny = exponent == 0
        top = exponent.all()
        m.d.sync += [
            self.o.fraction.eq(fraction),
            self.o.exponent.eq(exponent),
            self.o.sign.eq(sign),
            self.o.zero.eq(tiny if self.FLUSH else tiny & ~fraction.any()),
            self.o.special.eq(top),
            self.o.nan.eq(top & fraction.any()),
        ]
        if not self.FLUSH:
            with m.If(tiny):
                for bit in range(7):  # the highest bit that is set has priority
                    with m.If(fraction[bit]):
                        m.d.sync += [
                            self.o.fraction.eq(fraction << (7 - bit)),
                            self.o.exponent.eq(bit - 6),
                        ]
        return m


class FlushingBf16Unpacker(Bf16Unpacker):
    """A `Bf16Unpacker` that makes subnormal numbers zeros of the same sign."""

    FLUSH = True
