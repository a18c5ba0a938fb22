"""The operand buffer: stores operands as stream words, and reads one array word every cycle."""

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["OperandBuffer"]


class OperandBuffer(wiring.Component):
    """Memory of ``geometry.words`` words, written by line and segment, read by word.

    A word wider than a stream word has one bank for each of its segments. Several narrower words
    share one line, as they share one stream word. A word can be read in the cycle after its write.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
    write : shape
        ``valid`` and `weft.hw.control.loader.BufferWrite`.
    target : str
        As for `Bank`.

    Attributes
    ----------
    write : In, shape ``write``
    read_en : In
        Advances the read pipeline; the pipeline holds its state while 0.
    read_addr : In, word address
    read_data : Out, ``edge`` x ``depth`` values
        The word at ``read_addr``, LATENCY cycles later.
    """

    LATENCY = Bank.LATENCY

    def __init__(self, *, geometry, write, target):
        self.geometry = geometry
        self.target = target
        value = signed(8 * geometry.size)
        self.Word = data.ArrayLayout(data.ArrayLayout(value, geometry.depth), geometry.edge)
        super().__init__({
            "write": In(write),
            "read_en": In(1),
            "read_addr": In(ceil_log2(geometry.words)),
            "read_data": Out(self.Word),
        })

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        bits = 8 * g.word_bytes
        line = self.read_addr[ceil_log2(g.group):]
        if g.segments > 1:
            segments = [
                self._bank(m, n, width=min(8 * g.stream, bits - 8 * g.stream * n), line=line)
                for n in range(g.segments)
            ]
            m.d.comb += self.read_data.as_value().eq(Cat(segments))
            return m
        line_data = self._bank(m, 0, width=bits * g.group, line=line)
        # The word of the line, delayed by the latency of the bank.
        select = [Signal(ceil_log2(g.group), name=f"select_{n}") for n in range(Bank.LATENCY)]
        with m.If(self.read_en):
            m.d.sync += [select[0].eq(self.read_addr), select[1].eq(select[0])]
        words = Array(line_data.word_select(n, bits) for n in range(g.group))
        m.d.comb += self.read_data.as_value().eq(words[select[-1]])
        return m

    def _bank(self, m, segment, *, width, line):
        """The bank of one segment, ``width`` bits a line; returns its read data."""
        lines = self.geometry.words // self.geometry.group
        m.submodules[f"bank_{segment}"] = bank = Bank(width=width, depth=lines, target=self.target)
        write = self.write.write
        m.d.comb += [
            bank.write_en.eq(self.write.valid & (write.segment == segment)),
            bank.write_addr.eq(write.line),
            bank.write_data.eq(write.data),
            bank.read_en.eq(self.read_en),
            bank.read_addr.eq(line),
        ]
        return bank.read_data
