"""The headers of the command stream as the hardware sees them."""

from amaranth.lib import data

__all__ = ["Common", "JobHeader", "LoadHeader", "exceeds"]


def exceeds(value, most):
    """``value > most``, of which mostly a few bits are compared as numbers."""
    bits = most.bit_length()
    low = value[bits - 1] & value[:bits - 1].any() if most.bit_count() == 1 else value[:bits] > most
    return value[bits:].any() | low


class Common(data.Struct):
    """What every header starts with."""

    opcode: 8
    version: 8


class JobHeader(data.Struct):
    """Field for field `weft.commands.Job`."""

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
    """Field for field `weft.commands.Load`."""

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
