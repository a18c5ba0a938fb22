"""The CRC of a frame, computed one bit per cycle to save area."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Crc32"]

_POLYNOMIAL = 0xEDB88320  # from the lowest bit on
_RESIDUE = 0xDEBB20E3  # of data that is followed by its CRC


class Crc32(wiring.Component):
    """CRC-32 of a sequence of bytes, as in Ethernet and zlib.

    A byte takes 8 cycles after the cycle of ``valid``. Source: ISO/IEC 13239, 32-bit FCS.

    Attributes
    ----------
    start : In
        Restart of the CRC; 1 bit.
    valid : In
        Valid bit of ``data``, ``include`` and ``emit``; allowed only while ``idle`` is high.
    data : In
        Next byte; 8 bits.
    include : In
        Whether ``data`` is part of the CRC; 1 bit.
    emit : In
        ``data`` is the lowest byte of ``crc``; remove it. ``include`` must be 0; 1 bit.
    idle : Out
        High when ``crc`` includes all bytes so far; 1 bit.
    crc : Out
        CRC of the bytes since ``start``; 32 bits, valid while ``idle`` is high. The next bytes move
        down when a byte is removed.
    match : Out
        High when the last four bytes are the CRC of the bytes before them; 1 bit, one cycle after
        ``idle``.
    """

    start: In(1)
    valid: In(1)
    data: In(8)
    include: In(1)
    emit: In(1)
    idle: Out(1)
    crc: Out(32)
    match: Out(1)

    def elaborate(self, platform):
        m = Module()
        state = Signal(32, init=0xFFFFFFFF)
        bits = Signal(8)  # of the byte
        count = Signal(4)  # 8 to 15 while bits of the byte are left, so that one bit tells; else 0
        include, shift = Signal(), Signal()
        m.d.comb += [self.idle.eq(~count[-1]), self.crc.eq(~state)]
        m.d.sync += self.match.eq(state == _RESIDUE)
        m.d.sync += bits.eq(bits >> 1)
        with m.If(self.valid):
            m.d.sync += [
                bits.eq(self.data), count.eq(8), include.eq(self.include),
                shift.eq(self.include | self.emit),
            ]
        with m.Elif(~self.idle):
            m.d.sync += count.eq(count + 1)
        feedback = include & (state[0] ^ bits[0])
        with m.If(self.start):
            m.d.sync += state.eq(0xFFFFFFFF)
        with m.Elif(shift & ~self.idle):
            m.d.sync += state.eq((state >> 1) ^ Mux(feedback, _POLYNOMIAL, 0))
        return m
