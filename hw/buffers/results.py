"""The result buffer: keeps the sums from the array until the output stage has read them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["ResultBuffer"]


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
