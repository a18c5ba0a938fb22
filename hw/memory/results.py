"""The result buffer: catches what the array drains, column by column, until it can be sent."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["ResultBuffer"]


class ResultBuffer(wiring.Component):
    """A ring of ``depth`` rows, one bank a column: the skew of the array's columns ends here.

    Each column writes when its foot is valid; a row is there once the last column has written it,
    and can be read in the cycle after. Nothing can be refused: the sequencer has reserved the
    room.

    Parameters
    ----------
    foot : shape
        ``valid`` and ``sum``.
    cols, depth : int
        ``depth`` is a power of two.

    Attributes
    ----------
    foot : In, ``cols`` of them
    written : Out
        Rows written so far, modulo ``4 * depth``.
    read : In
        Give the row at ``address``.
    address : In
    row : Out, ``cols`` sums
        In the cycle after; it stays until the next read.
    """

    def __init__(self, *, foot, cols, depth):
        self.cols = cols
        self.depth = depth
        self.acc = foot["sum"].shape
        super().__init__({
            "foot": In(data.ArrayLayout(foot, cols)),
            "written": Out(ceil_log2(depth) + 2),
            "read": In(1),
            "address": In(ceil_log2(depth)),
            "row": Out(data.ArrayLayout(self.acc, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        for c in range(self.cols):
            m.submodules[f"bank_{c}"] = bank = Memory(shape=self.acc, depth=self.depth, init=[])
            write, read = bank.write_port(), bank.read_port()
            count = Signal(len(self.written), name=f"count_{c}")
            with m.If(self.foot[c].valid):
                m.d.sync += count.eq(count + 1)
            m.d.comb += [
                write.en.eq(self.foot[c].valid),
                write.addr.eq(count),
                write.data.eq(self.foot[c].sum),
                read.en.eq(self.read),
                read.addr.eq(self.address),
                self.row[c].eq(read.data),
            ]
        m.d.comb += self.written.eq(count)
        return m
