"""The outlet: what lies in the packing memory becomes the command stream."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.layout import ROWS

__all__ = ["PackReader"]


class PackReader(wiring.Component):
    """Sends one half of the memory after the other: row by row, a row's stream words in turn.

    Parameters
    ----------
    bytes_in : int
    places : int
        Stream words of a row, at most: a power of two.

    Attributes
    ----------
    address, en, release : Out; word, filled : In
        As of `weft.hw.dma.packer.Packer`.
    row, place, places : In
        The last row of the half, the last stream word of that row, and of any other.
    commands : Out, stream of ``bytes_in`` bytes
    idle : Out
        Nothing is on its way.
    """

    def __init__(self, *, bytes_in, places):
        bits = ceil_log2(places)
        super().__init__({
            "address": Out(bits + ceil_log2(ROWS)),
            "en": Out(1),
            "release": Out(1),
            "word": In(8 * bytes_in),
            "filled": In(1),
            "row": In(range(ROWS)),
            "place": In(bits),
            "places": In(bits),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        row, place = Signal.like(self.row), Signal.like(self.place)
        follows, asks, row_end = Signal(), Signal(), Signal()
        last_row = row == self.row
        m.d.comb += [
            self.en.eq(~self.commands.valid | self.commands.ready),
            self.commands.payload.eq(self.word),
            self.address.eq(Cat(place, row)),
            asks.eq(self.en & self.filled),
            row_end.eq((place == self.places) | (last_row & (place == self.place))),
            self.release.eq(asks & last_row & (place == self.place)),
            self.idle.eq(~follows & ~self.commands.valid),
        ]
        with m.If(self.en):
            m.d.sync += [follows.eq(self.filled), self.commands.valid.eq(follows)]
        with m.If(asks):
            m.d.sync += place.eq(place + 1)
            with m.If(row_end):
                m.d.sync += [place.eq(0), row.eq(row + 1)]
        with m.If(self.release):
            m.d.sync += row.eq(0)
        return m
