"""The memory of a core for networks with one row and one port, used by turns."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.chip.latencies import row_read, side_read
from weft.hw.buffers.single_port_bank import SinglePortBank
from weft.hw.chip.layouts import VectorAddress
from weft.hw.chip.memory import MemoryWrite, RowRead

__all__ = ["SinglePortMemory"]


class SinglePortMemory(wiring.Component):
    """`weft.hw.chip.memory.BankedMemory` in one bank with one port, for an array of one row.

    The port has turns: ``side_turn`` tells whose cycle it is. In a turn of the row, the row may
    read, and ``reads`` is not ready. In a turn of the side port it writes or reads. A write that
    comes in a turn of the row must stay on ``write`` for one more cycle: ``hold`` is 1 then.

    A read sees the writes that came before the cycle in which it was accepted; a row sees the
    writes that came 2 cycles before its request, or earlier. The memory has no reset.

    Parameters
    ----------
    chip : ChipConfig
        With one bank.

    Attributes
    ----------
    rows, row_data, outside, reads, read_bank, read_valid, read_data, write
        As in `weft.hw.chip.memory.BankedMemory`. ``read_data`` is combinational, too, and undefined
        without ``read_valid``. A row must be valid in its turns only.
    side_turn : In, 1 bit
    hold : Out, 1 bit
    """

    def __init__(self, chip):
        self.chip = chip
        self.ROW_LATENCY = row_read(chip.core)
        self.READ_LATENCY = side_read(chip.core)
        vector = 8 * chip.core.depth
        super().__init__({
            "rows": In(data.ArrayLayout(RowRead(chip), 1)),
            "row_data": Out(data.ArrayLayout(vector, 1)),
            "outside": In(signed(8)),
            "reads": In(stream.Signature(VectorAddress(chip))),
            "read_bank": In(1),
            "read_valid": Out(1),
            "read_data": Out(data.ArrayLayout(vector, 1)),
            "write": In(MemoryWrite(chip)),
            "side_turn": In(1),
            "hold": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        core, write, row = self.chip.core, self.write, self.rows[0]
        m.submodules.bank = bank = SinglePortBank(
            width=8 * core.depth, depth=self.chip.words, target=core.target
        )
        writes, reads_row, reads_outside = Signal(), Signal(), Signal()
        side_word = Mux(write.valid, write.address.word, self.reads.payload.word)
        outside = self.outside.as_unsigned().replicate(core.depth)
        m.d.comb += [
            writes.eq(self.side_turn & write.valid),
            self.hold.eq(~self.side_turn & write.valid),
            self.reads.ready.eq(self.side_turn & ~write.valid),
            bank.addr.eq(Mux(self.side_turn, side_word, row.address.word)),
            bank.write_en.eq(write.enable & writes.replicate(core.depth)),
            bank.write_data.eq(write.data),
            self.row_data[0].eq(
                bank.read_data & reads_row.replicate(8 * core.depth)
                | outside & reads_outside.replicate(8 * core.depth)
            ),
            self.read_data[0].eq(bank.read_data),
        ]
        m.d.sync += [
            reads_row.eq(row.valid), reads_outside.eq(row.outside),
            self.read_valid.eq(self.reads.valid & self.reads.ready),
        ]
        return m
