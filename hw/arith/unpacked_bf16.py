"""BF16 operands as the array takes them: normalized, with what is special about them told apart."""

from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Bf16Unpacker", "FlushingBf16Unpacker", "UnpackedBf16"]


class UnpackedBf16(data.Struct):
    """``(-1)**sign * (128 + fraction) / 128 * 2**(exponent - 127)``, or what the flags say.

    Of a zero, an infinity or a NaN the exponent and the fraction mean nothing.
    """

    fraction: 7
    exponent: signed(9)  # 1..254, and down to -6 for what was subnormal
    sign: 1
    zero: 1
    special: 1  # an infinity or a NaN
    nan: 1


class Bf16Unpacker(wiring.Component):
    """A bfloat16 becomes a `UnpackedBf16`, LATENCY cycles later.

    Subnormal numbers are normalized: once at the array's edge, rather than in every PE.

    Attributes
    ----------
    i : In, 16 bits
    o : Out, `UnpackedBf16`
    """

    LATENCY = 1
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
                for bit in range(7):  # the highest one that is set counts
                    with m.If(fraction[bit]):
                        m.d.sync += [
                            self.o.fraction.eq(fraction << (7 - bit)),
                            self.o.exponent.eq(bit - 6),
                        ]
        return m


class FlushingBf16Unpacker(Bf16Unpacker):
    """A `Bf16Unpacker` to which subnormal numbers are zeros of their sign."""

    FLUSH = True
