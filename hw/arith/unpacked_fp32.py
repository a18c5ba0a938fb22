"""Unpacked binary32 numbers, the start values of BF16 sums, with flags for infinities and NaNs."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.latencies import UNPACKER

__all__ = ["FlushingFp32Unpacker", "Fp32Unpacker", "UnpackedFp32"]


class UnpackedFp32(data.Struct):
    """A binary32; the fraction and the exponent of an infinity or a NaN are undefined."""

    fraction: 23
    exponent: 8
    sign: 1
    special: 1  # an infinity or a NaN
    nan: 1


class Fp32Unpacker(wiring.Component):
    """Unpacks a binary32 to an `UnpackedFp32`, LATENCY cycles later.

    Attributes
    ----------
    i : In, 32 bits
        A binary32.
    o : Out, `UnpackedFp32`
        LATENCY cycles after ``i``.
    """

    LATENCY = UNPACKER
    FLUSH = False

    def __init__(self):
        super().__init__({"i": In(32), "o": Out(UnpackedFp32)})

    def elaborate(self, platform):
        m = Module()
        fraction, exponent, sign = self.i[:23], self.i[23:31], self.i[31]
        top = exponent.all()
        m.d.sync += [
            self.o.fraction.eq(fraction),
            self.o.exponent.eq(exponent),
            self.o.sign.eq(sign),
            self.o.special.eq(top),
            self.o.nan.eq(top & fraction.any()),
        ]
        if self.FLUSH:
            with m.If(~exponent.any()):
                m.d.sync += self.o.fraction.eq(0)
        return m


class FlushingFp32Unpacker(Fp32Unpacker):
    """A `Fp32Unpacker` that makes subnormal numbers zeros of the same sign."""

    FLUSH = True
