"""The operand buffer, with an array word a cycle; and the result buffer, with the array's sums."""

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["OperandBuffer", "ResultBuffer"]

class ResultBuffer(wiring.Component):
    """A ring of ``depth`` rows, one bank for each column of the array.

    Each column writes when its south port is valid, so the skew of the columns ends here. A row is
    complete when the last column has written it, and can be read in the next cycle. The buffer has
    no back-pressure: the sequencer reserves the space before a pass ends.

    Parameters
    ----------
    south : shape
        ``valid`` and ``sum``.
    cols, depth : int
        ``depth`` is a power of two.
    registered : bool
        The banks have output registers.
    target : str
    lut_ram : bool
        As for `weft.hw.buffers.bank.Bank`; only banks with output registers use LUT RAM.

    Attributes
    ----------
    south : In, ``cols`` of shape ``south``
        The south ports of the array.
    row_written : Out
        High for one cycle per row: one more row can be read from the next cycle on.
    read_addr : In, row address
    row : Out, ``cols`` sums
        The row at ``read_addr``, `latency` cycles later.
    """

    @staticmethod
    def latency(registered):
        """Cycles from ``read_addr`` to ``row``."""
        return Bank.LATENCY if registered else 1

    def __init__(self, *, south, cols, depth, registered, target, lut_ram=False):
        self.cols = cols
        self.depth = depth
        self.registered = registered
        self.target = target
        self.lut_ram = lut_ram
        self.acc = south["sum"].shape
        super().__init__({
            "south": In(data.ArrayLayout(south, cols)),
            "row_written": Out(1),
            "read_addr": In(ceil_log2(depth)),
            "row": Out(data.ArrayLayout(self.acc, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        for c in range(self.cols):
            write_addr = Signal(len(self.read_addr), name=f"write_addr_{c}")
            with m.If(self.south[c].valid):
                m.d.sync += write_addr.eq(write_addr + 1)
            bank = self._registered_bank if self.registered else self._plain_bank
            m.d.comb += self.row[c].eq(bank(m, c, write_addr))
        m.d.comb += self.row_written.eq(self.south[-1].valid)
        return m

    def _registered_bank(self, m, c, write_addr):
        """A bank with an output register; returns its read data."""
        m.submodules[f"bank_{c}"] = bank = Bank(
            width=len(self.south[c].sum), depth=self.depth, target=self.target,
            lut_ram=self.lut_ram,
        )
        m.d.comb += [
            bank.write_en.eq(self.south[c].valid),
            bank.write_addr.eq(write_addr),
            bank.write_data.eq(self.south[c].sum),
            bank.read_addr.eq(self.read_addr),
        ]
        return bank.read_data

    def _plain_bank(self, m, c, write_addr):
        """A bank without an output register; returns its read data."""
        m.submodules[f"bank_{c}"] = bank = Memory(shape=self.acc, depth=self.depth, init=[])
        write, read = bank.write_port(), bank.read_port()
        m.d.comb += [
            write.en.eq(self.south[c].valid),
            write.addr.eq(write_addr),
            write.data.eq(self.south[c].sum),
            read.addr.eq(self.read_addr),
        ]
        return read.data


class OperandBuffer(wiring.Component):
    """Memory of ``geometry.words`` words, written by line and segment, read by word.

    A word wider than a stream word has one bank for each of its segments. Several narrower words
    share one line, as they share one stream word. A word can be read in the cycle after its write.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
    write : shape
        ``valid`` and `weft.hw.control.job_table.BufferWrite`.
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
