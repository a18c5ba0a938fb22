"""The result buffer: catches what the array drains, column by column, until it can be sent."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["ResultBuffer"]


class ResultBuffer(wiring.Component):
    """A ring of ``depth`` rows, one bank a column: the skew of the array's columns ends here.

    Each column writes when its foot is valid; a row is there once the last column has written it,
    and can be read in the cycle after. Nothing can be refused: the sequencer has reserved the
    room.

    Banks of plain memory give what is read in the cycle after; with a register at their output
    they take a cycle more.

    Parameters
    ----------
    foot : shape
        ``valid`` and ``sum``.
    cols, depth : int
        ``depth`` is a power of two.
    registered : bool
        Whether banks have registers at their outputs.
    target : str
        As of `weft.hw.buffers.bank.Bank`.

    Attributes
    ----------
    foot : In, ``cols`` of them
    landed : Out
        Pulse: one more row can be read from the next cycle on.
    address : In
    row : Out, ``cols`` sums
        `latency` cycles later.
    """

    @staticmethod
    def latency(registered):
        return Bank.LATENCY if registered else 1

    def __init__(self, *, foot, cols, depth, registered, target):
        self.cols = cols
        self.depth = depth
        self.registered = registered
        self.target = target
        self.acc = foot["sum"].shape
        super().__init__({
            "foot": In(data.ArrayLayout(foot, cols)),
            "landed": Out(1),
            "address": In(ceil_log2(depth)),
            "row": Out(data.ArrayLayout(self.acc, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        for c in range(self.cols):
            count = Signal(len(self.address), name=f"count_{c}")
            with m.If(self.foot[c].valid):
                m.d.sync += count.eq(count + 1)
            kind = self._registered if self.registered else self._plain
            m.d.comb += self.row[c].eq(kind(m, c, count))
        m.d.comb += self.landed.eq(self.foot[-1].valid)
        return m

    def _registered(self, m, c, place):
        """A bank: what is read of it."""
        m.submodules[f"bank_{c}"] = bank = Bank(
            width=len(self.foot[c].sum), depth=self.depth, target=self.target
        )
        m.d.comb += [
            bank.write.eq(self.foot[c].valid),
            bank.place.eq(place),
            bank.data.eq(self.foot[c].sum),
            bank.address.eq(self.address),
        ]
        return bank.word

    def _plain(self, m, c, place):
        m.submodules[f"bank_{c}"] = bank = Memory(shape=self.acc, depth=self.depth, init=[])
        write, read = bank.write_port(), bank.read_port()
        m.d.comb += [
            write.en.eq(self.foot[c].valid),
            write.addr.eq(place),
            write.data.eq(self.foot[c].sum),
            read.addr.eq(self.address),
        ]
        return read.data
