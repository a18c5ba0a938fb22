"""The pack reader: sends the contents of the packing memory as the command stream."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.layout import HALF_ROWS

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
    read_addr, read_en, release : Out
        As of `weft.hw.dma.packer.Packer`.
    read_data, filled, last_row, last_row_end, row_end : In
        As of `weft.hw.dma.packer.Packer`.
    commands : Out, stream of ``bytes_in`` bytes
    idle : Out
        1 bit; no stream word is in progress.
    """

    def __init__(self, *, bytes_in, row_words):
        bits = ceil_log2(row_words)
        super().__init__({
            "read_addr": Out(bits + ceil_log2(HALF_ROWS)),
            "read_en": Out(1),
            "release": Out(1),
            "read_data": In(8 * bytes_in),
            "filled": In(1),
            "last_row": In(range(HALF_ROWS)),
            "last_row_end": In(bits),
            "row_end": In(bits),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        row, index = Signal.like(self.last_row), Signal.like(self.row_end)
        next_valid, read, row_done = Signal(), Signal(), Signal()
        in_last_row = row == self.last_row
        m.d.comb += [
            self.read_en.eq(~self.commands.valid | self.commands.ready),
            self.commands.payload.eq(self.read_data),
            self.read_addr.eq(Cat(index, row)),
            read.eq(self.read_en & self.filled),
            row_done.eq((index == self.row_end) | (in_last_row & (index == self.last_row_end))),
            self.release.eq(read & in_last_row & (index == self.last_row_end)),
            self.idle.eq(~next_valid & ~self.commands.valid),
        ]
        with m.If(self.read_en):
            m.d.sync += [next_valid.eq(self.filled), self.commands.valid.eq(next_valid)]
        with m.If(read):
            m.d.sync += index.eq(index + 1)
            with m.If(row_done):
                m.d.sync += [index.eq(0), row.eq(row + 1)]
        with m.If(self.release):
            m.d.sync += row.eq(0)
        return m
