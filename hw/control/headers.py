"""The layouts of the headers of the command stream, and the store of a header."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import HEADER_BYTES, Region

__all__ = ["CommonHeader", "HeaderStore", "JobHeader", "LoadHeader", "exceeds", "header_bits"]


def exceeds(value, limit):
    """``value > limit``, with as few bits as possible in a carry chain.

    The bits above the length of ``limit`` are only tested for 0; for a power of two no bits are
    compared as numbers.
    """
    bits = limit.bit_length()
    power_of_two = limit.bit_count() == 1
    low = value[bits - 1] & value[:bits - 1].any() if power_of_two else value[:bits] > limit
    return value[bits:].any() | low


class CommonHeader(data.Struct):
    """The fields that every header starts with."""

    opcode: 8
    version: 8


class JobHeader(data.Struct):
    """The fields of `weft.commands.Job`, at the same bytes."""

    opcode: 8
    version: 8
    tag: 16
    flags: 16
    m: 16
    k: 32
    n: 16
    a_page: 16
    a_pitch: 16
    a_pages: 16
    b_page: 16
    b_pitch: 16
    b_pages: 16
    c_page: 16
    c_pitch: 16
    c_pages: 16


class LoadHeader(data.Struct):
    """The fields of `weft.commands.Load`, at the same bytes."""

    opcode: 8
    version: 8
    operand: 8
    flags: 8
    page: 16
    pitch: 16
    panels: 32
    words: 32
    pages: 32
    reserved: 96


def header_bits(geometries, flags) -> list[int]:
    """For each byte of a header, the number of its low bits that a core can use.

    A core with these buffers compares the other bits with 0 only, or ignores them.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    flags : int
        The flags of a job that the core supports.
    """
    a, b = geometries[Region.A], geometries[Region.B]
    pages = max(g.pages for g in geometries.values())
    page = (2 * pages).bit_length()  # a page number, or the page after the last one of a span
    k = (min(a.words, b.words) * a.depth).bit_length()
    job = {
        "opcode": 8, "version": 8, "tag": 16, "flags": int(flags).bit_length(),
        "m": (a.pages * a.edge).bit_length(), "n": (b.pages * b.edge).bit_length(), "k": k,
        **{f"{x}_{field}": page for x in "abc" for field in ("page", "pitch", "pages")},
    }
    load = {
        "operand": max(geometries).bit_length(), "flags": 8, "page": page, "pitch": page,
        "panels": pages.bit_length(),
        "words": max(g.words for g in geometries.values()).bit_length(), "pages": page,
    }
    bits = [0] * HEADER_BYTES
    for header, used in ((JobHeader, job), (LoadHeader, load)):
        shape = header.as_shape()
        for name, count in used.items():
            field = shape[name]
            for n in range(field.width // 8):
                byte = field.offset // 8 + n
                bits[byte] = max(bits[byte], min(8, max(0, count - 8 * n)))
    return bits


class HeaderStore(wiring.Component):
    """Collects the words of a header, and keeps the low bits of each byte.

    One more bit of a byte is 1 if any of its higher bits is 1, and the bits above it are 0. So a
    number that is too large for the core stays too large, and a number that is not 0 stays so.

    Parameters
    ----------
    bytes_in : int
        Bytes of a word; at most as many as a header has.
    bits : list of int
        The number of low bits to keep, for each byte of the header.

    Attributes
    ----------
    write : In, 1 bit
    word : In, word number
    data : In, ``bytes_in`` bytes
    header : Out, the bits of a header
        One cycle after ``write``.
    """

    def __init__(self, *, bytes_in, bits):
        self.bytes_in = bytes_in
        self.bits = bits
        super().__init__({
            "write": In(1),
            "word": In(range(len(bits) // bytes_in)),
            "data": In(8 * bytes_in),
            "header": Out(8 * len(bits)),
        })

    def elaborate(self, platform):
        m = Module()
        kept = []
        for n, count in enumerate(self.bits):
            byte = self.data.word_select(n % self.bytes_in, 8)
            value = Cat(byte[:count], byte[count:].any()) if count < 7 else byte
            register = Signal(len(value), name=f"byte_{n}")
            with m.If(self.write & (self.word == n // self.bytes_in)):
                m.d.sync += register.eq(value)
            kept.append(Cat(register, *[0] * (8 - len(value))))
        m.d.comb += self.header.eq(Cat(kept))
        return m
