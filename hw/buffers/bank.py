"""One bank of on-chip memory: block RAM of the FPGA family, or a memory that a tool maps."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.mux_tree import mux_tree
from weft.hw.fabrics import FABRICS
from weft.latencies import MEMORY_READ

__all__ = ["LUT_RAM_WORDS", "Bank"]

LUT_RAM_WORDS = 32  # of a bank in LUT RAM; more words need too many multiplexers


class Bank(wiring.Component):
    """``read_data <= memory[read_addr]``, LATENCY cycles of ``read_en`` later.

    With a platform it instantiates the block RAM of its FPGA family, if `weft.hw.fabrics` has it.
    Otherwise the tool maps it to blocks. A read is undefined if its word is written before the read
    data is valid.

    The bank can be read in ``parts`` of a word: the lowest bits of ``read_addr`` select the part.
    It can be written byte by byte.

    A shallow bank is better in ``lut_ram``: logic cells that some FPGA families use as memory.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and number of words.
    target : str
        As in the Config.
    parts : int
        Parts of a word that are read separately; a power of two.
    bytewise : bool
        Each byte of a word has its own bit of ``write_en``.
    lut_ram : bool
        Use LUT RAM if the FPGA family has it.

    Attributes
    ----------
    write_en : In, 1 bit, or 1 bit a byte if ``bytewise``
    write_addr : In, word address
    write_data : In, ``width`` bits
    read_en : In
        Advances the read pipeline; the pipeline holds its state while 0.
    read_addr : In, ``Cat(part, word address)``
    read_data : Out, ``width / parts`` bits
    """

    LATENCY = MEMORY_READ

    def __init__(self, *, width, depth, target, parts=1, bytewise=False, lut_ram=False):
        self.width = width
        self.depth = depth
        self.target = target
        self.parts = parts
        self.bytewise = bytewise
        self.lut_ram = lut_ram and FABRICS[target].lut_ram is not None
        addr = ceil_log2(depth)
        super().__init__({
            "write_en": In(width // 8 if bytewise else 1),
            "write_addr": In(addr),
            "write_data": In(width),
            "read_en": In(1, init=1),
            "read_addr": In(ceil_log2(parts) + addr),
            "read_data": Out(width // parts),
        })

    def elaborate(self, platform):
        m = Module()
        fabric = FABRICS[self.target]
        if platform is None or self.lut_ram or not fabric.add_blocks(m, self):
            self._inferred(m, fabric)
        return m

    def _inferred(self, m, fabric):
        """A memory that the tool maps to blocks, or that a simulator models."""
        # With `no_rw_check` and a register after the read, a tool adds no address comparison.
        style = {"ram_style": fabric.lut_ram} if self.lut_ram else {}
        m.submodules.memory = memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1, **style}
        )
        write = memory.write_port(granularity=8 if self.bytewise else None)
        m.d.comb += [
            write.en.eq(self.write_en),
            write.addr.eq(self.write_addr),
            write.data.eq(self.write_data),
        ]
        part_bits = ceil_log2(self.parts)
        if fabric.registers_address:
            read, r_addr = memory.read_port(), Signal.like(self.read_addr, reset_less=True)
            m.d.comb += [
                read.en.eq(self.read_en), read.addr.eq(r_addr[part_bits:]),
                self.read_data.eq(self._part(m, read.data, r_addr)),
            ]
            with m.If(self.read_en):
                m.d.sync += r_addr.eq(self.read_addr)
            return
        read, r_word = memory.read_port(domain="comb"), Signal(self.width, reset_less=True)
        m.d.comb += read.addr.eq(self.read_addr[part_bits:])
        with m.If(self.read_en):
            m.d.sync += [
                r_word.eq(read.data), self.read_data.eq(self._part(m, r_word, self.read_addr)),
            ]

    def _part(self, m, word, addr):
        """The part of ``word`` that ``addr`` selected one read step earlier."""
        if self.parts == 1:
            return word
        part = Signal(ceil_log2(self.parts), reset_less=True)
        with m.If(self.read_en):
            m.d.sync += part.eq(addr)
        return mux_tree(word, part, self.width // self.parts)
