"""The words of B: the array reads a half of a word in each cycle."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["WeightBuffer"]


class WeightBuffer(wiring.Component):
    """Words of ``cols`` vectors of 4 bytes, in halves of two bytes of each column.

    Parameters
    ----------
    cols, words : int

    Attributes
    ----------
    enable : In, 1 bit for each column
    write_address : In
        ``Cat(half, word)``.
    write_data : In, 16 bits
        For all columns that are enabled.
    diagonal : In, 1 bit
        All columns are written: column n gets byte n of the word, in its place, and 0 elsewhere.
    read_address : In
    read_data : Out, 16 bits for each column
        A cycle later.
    """

    def __init__(self, *, cols, words):
        self.cols, self.words = cols, words
        bits = (words - 1).bit_length() + 1
        super().__init__({
            "enable": In(cols), "write_address": In(bits), "write_data": In(16),
            "diagonal": In(1), "read_address": In(bits),
            "read_data": Out(data.ArrayLayout(16, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        half = self.write_address[0]
        for column in range(self.cols):
            m.submodules[f"column_{column}"] = memory = Memory(
                shape=16, depth=2 * self.words, init=[],
                attrs={"ram_style": "block", "no_rw_check": 1},
            )
            write, read = memory.write_port(), memory.read_port()
            mine = half == column // 2
            kept = [~self.diagonal | (mine if byte == column % 2 else 0) for byte in range(2)]
            m.d.comb += [
                write.en.eq(self.enable[column]), write.addr.eq(self.write_address),
                write.data.eq(self.write_data & Cat(bit.replicate(8) for bit in kept)),
                read.addr.eq(self.read_address), self.read_data[column].eq(read.data),
            ]
        return m
