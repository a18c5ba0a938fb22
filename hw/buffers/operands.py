"""The operand buffer: takes stream words as they come, gives a word for the array every cycle."""

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["OperandBuffer"]


class OperandBuffer(wiring.Component):
    """Memory of ``words`` words, written by lines and segments, read by words.

    A word over a stream word wide lies in a bank for each of its segments; narrower words share a
    line, as they share a stream word. A word can be read in the cycle after its write.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
    write : shape
        ``valid`` and `weft.hw.control.loader.BufferWrite`.
    target : str
        As of `Bank`.

    Attributes
    ----------
    write : In
    en : In
        The read moves on; without it, what is under way stays where it is.
    address : In
        Word to read.
    word : Out, ``edge`` x ``depth`` values
        LATENCY cycles later.
    """

    LATENCY = Bank.LATENCY

    def __init__(self, *, geometry, write, target="generic"):
        self.geometry = geometry
        self.target = target
        value = signed(8 * geometry.size)
        self.Word = data.ArrayLayout(data.ArrayLayout(value, geometry.depth), geometry.edge)
        super().__init__({
            "write": In(write),
            "en": In(1),
            "address": In(ceil_log2(geometry.words)),
            "word": Out(self.Word),
        })

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        bits = 8 * g.word_bytes
        line = self.address[ceil_log2(g.group):]
        if g.segments > 1:
            parts = [
                self._bank(m, n, width=min(8 * g.stream, bits - 8 * g.stream * n), line=line)
                for n in range(g.segments)
            ]
            m.d.comb += self.word.as_value().eq(Cat(parts))
            return m
        whole = self._bank(m, 0, width=bits * g.group, line=line)
        which = [Signal(ceil_log2(g.group), name=f"which_{n}") for n in range(Bank.LATENCY)]
        with m.If(self.en):
            m.d.sync += [which[0].eq(self.address), which[1].eq(which[0])]
        choice = Array(whole.word_select(n, bits) for n in range(g.group))
        m.d.comb += self.word.as_value().eq(choice[which[-1]])
        return m

    def _bank(self, m, segment, *, width, line):
        """A bank of lines of ``width`` bits: what is read of it."""
        lines = self.geometry.words // self.geometry.group
        m.submodules[f"bank_{segment}"] = bank = Bank(width=width, depth=lines, target=self.target)
        write = self.write.write
        m.d.comb += [
            bank.write.eq(self.write.valid & (write.segment == segment)),
            bank.place.eq(write.line),
            bank.data.eq(write.data),
            bank.en.eq(self.en),
            bank.address.eq(line),
        ]
        return bank.word
