"""The pack reader: sends the contents of the packing memory as the command stream."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from weft.hw.dma.packer import HalfRead

__all__ = ["PackReader"]


class PackReader(wiring.Component):
    """Sends each filled half: row by row, and within a row one stream word after the other.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word.
    row_words : int
        Stream words per row: a power of two.

    Attributes
    ----------
    half : Out, `weft.hw.dma.packer.HalfRead`
    commands : Out, stream of ``bytes_in`` bytes
    idle : Out
        1 bit; no stream word is in progress.
    """

    def __init__(self, *, bytes_in, row_words):
        super().__init__({
            "half": Out(HalfRead(bytes_in=bytes_in, row_words=row_words)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        half = self.half
        row, index = Signal.like(half.last_row), Signal.like(half.row_end)
        next_valid, read, row_done = Signal(), Signal(), Signal()
        in_last_row = row == half.last_row
        m.d.comb += [
            half.enable.eq(~self.commands.valid | self.commands.ready),
            self.commands.payload.eq(half.data),
            half.address.eq(Cat(index, row)),
            read.eq(half.enable & half.filled),
            row_done.eq((index == half.row_end) | (in_last_row & (index == half.last_row_end))),
            half.release.eq(read & in_last_row & (index == half.last_row_end)),
            self.idle.eq(~next_valid & ~self.commands.valid),
        ]
        with m.If(half.enable):
            m.d.sync += [next_valid.eq(half.filled), self.commands.valid.eq(next_valid)]
        with m.If(read):
            m.d.sync += index.eq(index + 1)
            with m.If(row_done):
                m.d.sync += [index.eq(0), row.eq(row + 1)]
        with m.If(half.release):
            m.d.sync += row.eq(0)
        return m
