"""One bank of on-chip memory with two ports: one reads, the other one reads or writes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.fabrics import FABRICS
from weft.latencies import MEMORY_READ

__all__ = ["DualPortBank"]


class DualPortBank(wiring.Component):
    """``a_data <= memory[a_addr]`` and ``b_data <= memory[b_addr]``, LATENCY cycles later.

    With a platform it instantiates the block RAM of its FPGA family, if `weft.hw.fabrics` has it.
    Otherwise the tool maps it to blocks: port B has one address for reads and writes. A read is
    undefined if its word is written before the read data is valid, and in the cycle of a write
    ``b_data`` is undefined.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and number of words. ``width`` is a multiple of 8.
    target : str
        As in the Config.

    Attributes
    ----------
    a_addr : In, word address
    a_data : Out, ``width`` bits
    b_addr : In, word address
    b_write_en : In, 1 bit a byte
    b_write_data : In, ``width`` bits
    b_data : Out, ``width`` bits
    """

    LATENCY = MEMORY_READ

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        addr = ceil_log2(depth)
        super().__init__({
            "a_addr": In(addr),
            "a_data": Out(width),
            "b_addr": In(addr),
            "b_write_en": In(width // 8),
            "b_write_data": In(width),
            "b_data": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        if platform is None or not FABRICS[self.target].add_dual_port_blocks(m, self):
            self._inferred(m)
        return m

    def _inferred(self, m):
        """A memory that the tool maps to blocks, or that a simulator models."""
        # With `no_rw_check` and a register after the read, a tool adds no address comparison.
        m.submodules.memory = memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        write = memory.write_port(granularity=8)
        m.d.comb += [
            write.en.eq(self.b_write_en), write.addr.eq(self.b_addr),
            write.data.eq(self.b_write_data),
        ]
        for name, addr, out in (("a", self.a_addr, self.a_data), ("b", self.b_addr, self.b_data)):
            read = memory.read_port(domain="comb")
            word = Signal(self.width, name=f"{name}_word", reset_less=True)
            m.d.comb += read.addr.eq(addr)
            m.d.sync += [word.eq(read.data), out.eq(word)]
