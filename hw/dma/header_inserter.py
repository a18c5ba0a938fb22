"""The header inserter: turns the words of a header into pack words."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import HEADER_BYTES

__all__ = ["HeaderInserter"]


class HeaderInserter(wiring.Component):
    """Sends a header as the pack words of a PACKED slice, with zeros up to the last stream word.

    Small pack words take part of a header word each; large ones collect several header words.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word.
    pack_word : shape
        `weft.hw.dma.aligner.PackWord`.

    Attributes
    ----------
    word, index : In
        A word of the header, 32 bits, and its index; valid with ``take``.
    take : In
        1 bit; take the word. Only while not ``busy``.
    busy : Out
        1 bit; no word can be taken in this cycle.
    slice_start : Out
        1 bit; pulse: the first word of a header is taken.
    words : Out, ``valid`` and ``word``, a `PackWord`
        All zeros while no header is in progress.
    """

    def __init__(self, *, bytes_in, pack_word):
        self.bytes_in = bytes_in
        super().__init__({
            "word": In(32), "index": In(4), "take": In(1),
            "busy": Out(1),
            "slice_start": Out(1),
            "words": Out(data.StructLayout({"valid": 1, "word": pack_word})),
        })

    def elaborate(self, platform):
        m = Module()
        valid, out = self.words.valid, self.words.word
        size = len(out.bytes)
        per_word, per_pack_word = max(4 // size, 1), max(size // 4, 1)  # pack words; header words
        zeros = max(self.bytes_in - HEADER_BYTES, 0) // size  # pack words of padding
        count = max(self.bytes_in, HEADER_BYTES) // size
        buffer = Signal(8 * max(size, 4), reset_less=True)
        index = Signal(ceil_log2(count))
        remaining = Signal(range(per_word + zeros))  # pack words after the one on the output
        position = self.index[: ceil_log2(per_pack_word)]  # of the header word in its pack word
        last = self.index[: ceil_log2(HEADER_BYTES // 4)].all()
        m.d.comb += [
            self.busy.eq(remaining != 0), self.slice_start.eq(self.take & (self.index == 0)),
            out.packed.eq(valid), out.last.eq(valid & index.all()),
            out.bytes.eq(buffer), out.index.eq(index),
        ]
        m.d.sync += valid.eq(self.busy | (self.take & (position.all() | last)))
        with m.If(valid):
            m.d.sync += [index.eq(index + 1), buffer.eq(0)]
        with m.If(self.busy):
            m.d.sync += [remaining.eq(remaining - 1), buffer.eq(buffer >> 8 * size)]
        with m.If(self.take):
            m.d.sync += remaining.eq(per_word - 1)
            with m.If(last):
                m.d.sync += remaining.eq(per_word - 1 + zeros)
            with m.If(position == 0):
                m.d.sync += buffer.eq(self.word)
            for n in range(1, per_pack_word):
                with m.If(position == n):
                    m.d.sync += buffer[32 * n : 32 * (n + 1)].eq(self.word)
        return m
