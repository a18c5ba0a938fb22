"""The CRC of a frame: one bit a cycle, which saves cells, or one byte a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteCrc32", "Crc32"]

_POLYNOMIAL = 0xEDB88320  # from the lowest bit on
_RESIDUE = 0xDEBB20E3  # of data that is followed by its CRC
_START = 0xFFFFFFFF


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
        state = Signal(32, init=_START)
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
            m.d.sync += state.eq(_START)
        with m.Elif(shift & ~self.idle):
            m.d.sync += state.eq((state >> 1) ^ Mux(feedback, _POLYNOMIAL, 0))
        return m


class ByteCrc32(wiring.Component):
    """The same CRC, a byte a cycle, with the attributes of `Crc32`.

    ``valid`` is allowed in every cycle. ``crc`` has the byte in the cycle after it. ``idle`` is low
    in this cycle, and ``match`` is valid in the next one.

    ``crc <= (crc >> 8) ^ table[crc[:8] ^ byte]`` (D. Sarwate, Communications of the ACM 31, 1988),
    and ``table[x ^ y] = table[x] ^ table[y]``: 8 entries make the table.
    """

    start: In(1)
    valid: In(1)
    data: In(8)
    include: In(1)
    emit: In(1)
    idle: Out(1, init=1)
    crc: Out(32)
    match: Out(1)

    def elaborate(self, platform):
        m = Module()
        state, index, entry = Signal(32, init=_START), Signal(8), Signal(32)
        m.d.comb += [self.crc.eq(~state), index.eq(state[:8] ^ self.data)]
        powers = [_entry(1 << n) for n in range(len(index))]
        m.d.comb += [
            bit.eq(Cat(i for i, power in zip(index, powers, strict=True) if power >> n & 1).xor())
            for n, bit in enumerate(entry)
        ]
        m.d.sync += [self.idle.eq(~self.valid), self.match.eq(state == _RESIDUE)]
        with m.If(self.start):
            m.d.sync += state.eq(_START)
        with m.Elif(self.valid & (self.include | self.emit)):
            m.d.sync += state.eq((state >> 8) ^ Mux(self.include, entry, 0))
        return m


def _entry(index):
    """The entry of the table: the effect of a byte on a CRC of 0."""
    for _ in range(8):
        index = index >> 1 ^ (_POLYNOMIAL if index & 1 else 0)
    return index
