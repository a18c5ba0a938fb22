"""One bank of on-chip memory with one port: it reads or writes."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.fabrics import FABRICS

__all__ = ["SinglePortBank"]


class SinglePortBank(wiring.Component):
    """``read_data <= memory[addr]`` in a cycle without a write, LATENCY cycles later.

    With a platform it instantiates the single-port memories of its FPGA family, if
    `weft.hw.fabrics` has them. Otherwise the tool maps it to blocks. ``read_data`` is undefined
    after a cycle with a write.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and number of words. ``width`` is a multiple of 8.
    target : str
        As in the Config.

    Attributes
    ----------
    addr : In, word address
    write_en : In, 1 bit a byte
    write_data : In, ``width`` bits
    read_data : Out, ``width`` bits
    """

    LATENCY = 1

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        super().__init__({
            "addr": In(ceil_log2(depth)),
            "write_en": In(width // 8),
            "write_data": In(width),
            "read_data": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        if platform is None or not FABRICS[self.target].add_single_port_blocks(m, self):
            m.submodules.memory = memory = Memory(
                shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1}
            )
            write, read = memory.write_port(granularity=8), memory.read_port()
            m.d.comb += [
                write.en.eq(self.write_en), write.addr.eq(self.addr),
                write.data.eq(self.write_data),
                read.addr.eq(self.addr), self.read_data.eq(read.data),
            ]
        return m
