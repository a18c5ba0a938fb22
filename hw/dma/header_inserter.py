"""Headers: the words of one become granules, on their way into the packing memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import HEADER_BYTES

__all__ = ["HeaderInserter"]


class HeaderInserter(wiring.Component):
    """A header as granules of a raw panel, with zeros behind it up to the end of a stream word.

    Parameters
    ----------
    bytes_in : int
    granule : shape
        `weft.hw.dma.aligner.PackWord`.

    Attributes
    ----------
    word, index, take : In
        Word ``index`` of a header.
    wait : Out
        None may be taken in this cycle.
    begin : Out
        Pulse: it is a header's first.
    granules : Out, ``valid`` and a ``granule``
        Zeros where no header is under way.
    """

    def __init__(self, *, bytes_in, granule):
        self.bytes_in = bytes_in
        super().__init__({
            "word": In(32), "index": In(4), "take": In(1),
            "wait": Out(1),
            "begin": Out(1),
            "granules": Out(data.StructLayout({"valid": 1, "granule": granule})),
        })

    def elaborate(self, platform):
        m = Module()
        valid, out = self.granules.valid, self.granules.granule
        size = len(out.bytes)
        times, words = max(4 // size, 1), max(size // 4, 1)  # granules of a word, or words of one
        behind = max(self.bytes_in - HEADER_BYTES, 0) // size  # granules of zeros
        count = max(self.bytes_in, HEADER_BYTES) // size
        held = Signal(8 * max(size, 4), reset_less=True)
        index = Signal(ceil_log2(count))
        left = Signal(range(times + behind))  # granules of what is held, behind this one
        place = self.index[: ceil_log2(words)]
        last = self.index[: ceil_log2(HEADER_BYTES // 4)].all()
        m.d.comb += [
            self.wait.eq(left != 0), self.begin.eq(self.take & (self.index == 0)),
            out.raw.eq(valid), out.end.eq(valid & index.all()),
            out.bytes.eq(held), out.index.eq(index),
        ]
        m.d.sync += valid.eq(self.wait | (self.take & (place.all() | last)))
        with m.If(valid):
            m.d.sync += [index.eq(index + 1), held.eq(0)]
        with m.If(self.wait):
            m.d.sync += [left.eq(left - 1), held.eq(held >> 8 * size)]
        with m.If(self.take):
            m.d.sync += left.eq(times - 1)
            with m.If(last):
                m.d.sync += left.eq(times - 1 + behind)
            with m.If(place == 0):
                m.d.sync += held.eq(self.word)
            for n in range(1, words):
                with m.If(place == n):
                    m.d.sync += held[32 * n : 32 * (n + 1)].eq(self.word)
        return m
