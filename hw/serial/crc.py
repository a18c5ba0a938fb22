"""The CRC of a frame, computed one bit per cycle to save area."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

__all__ = ["Crc32"]


class Crc32(wiring.Component):
    """CRC-32 of a sequence of bytes, as in Ethernet and zlib.

    A byte takes 8 cycles after the cycle of ``valid``.

    Attributes
    ----------
    start : In
        Restart of the CRC; 1 bit.
    valid : In
        Valid bit of ``data`` and ``include``; allowed only while ``idle`` is high.
    data : In
        Next byte; 8 bits.
    include : In
        Whether ``data`` is part of the CRC; 1 bit.
    idle : Out
        High when ``crc`` includes all bytes so far; 1 bit.
    crc : Out
        CRC of the bytes since ``start``; 32 bits, valid while ``idle`` is high.
    match : Out
        High when the last four bytes are the CRC of the bytes before them; 1 bit, one cycle after
        ``idle``.
    """

    start: In(1)
    valid: In(1)
    data: In(8)
    include: In(1)
    idle: Out(1)
    crc: Out(32)
    match: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=1).create()
        # bit_valid has a one for each bit that remains in bits.
        bits, bit_valid, include = Signal(8), Signal(8), Signal()
        m.d.comb += [
            crc.start.eq(self.start), crc.data.eq(bits[0]), crc.valid.eq(bit_valid[0] & include),
            self.idle.eq(~bit_valid[0]), self.crc.eq(crc.crc),
        ]
        m.d.sync += self.match.eq(crc.match_detected)
        with m.If(self.valid):
            m.d.sync += [bits.eq(self.data), bit_valid.eq(-1), include.eq(self.include)]
        with m.Else():
            m.d.sync += [bits.eq(bits >> 1), bit_valid.eq(bit_valid >> 1)]
        return m
