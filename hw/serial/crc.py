"""The CRC of a frame, a bit at a time: it is small, and a byte on a wire lasts long."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

__all__ = ["Crc32"]


class Crc32(wiring.Component):
    """CRC-32, as of Ethernet and zlib, of the bytes that count.

    Attributes
    ----------
    start : In
        Forget what was taken.
    take : In, byte : In, counts : In
        A byte, of which 8 cycles later, if it counts, the sum is; only while ``idle``.
    idle : Out
        The sum is of all that was taken.
    crc : Out
        The sum.
    match : Out
        What was taken ends with the sum of what is before; a cycle behind ``idle``.
    """

    start: In(1)
    take: In(1)
    byte: In(8)
    counts: In(1)
    idle: Out(1)
    crc: Out(32)
    match: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=1).create()
        bits, left, counts = Signal(8), Signal(8), Signal()  # left: a one for each bit
        m.d.comb += [
            crc.start.eq(self.start), crc.data.eq(bits[0]), crc.valid.eq(left[0] & counts),
            self.idle.eq(~left[0]), self.crc.eq(crc.crc),
        ]
        m.d.sync += self.match.eq(crc.match_detected)
        with m.If(self.take):
            m.d.sync += [bits.eq(self.byte), left.eq(-1), counts.eq(self.counts)]
        with m.Else():
            m.d.sync += [bits.eq(bits >> 1), left.eq(left >> 1)]
        return m
