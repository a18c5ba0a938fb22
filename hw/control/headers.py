"""The layouts of the headers of the command stream."""

from amaranth.lib import data

__all__ = ["CommonHeader", "JobHeader", "LoadHeader", "exceeds"]


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
