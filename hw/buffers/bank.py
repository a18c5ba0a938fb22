"""Banks of on-chip memory: with a port for writes and one for reads, with one port, with two."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.fabrics import FABRICS
from weft.latencies import MEMORY_READ

__all__ = ["LUT_RAM_WORDS", "Bank", "DualPortBank", "SinglePortBank", "mux_tree"]


def mux_tree(word, index, width):
    """``word[index * width : (index + 1) * width]``.

    ``word`` has at most ``2 ** len(index)`` parts.
    """
    parts = [word[start : start + width] for start in range(0, len(word), width)]
    for bit in index:
        parts = [
            Mux(bit, high, low) for low, high in zip(parts[::2], parts[1::2] or parts, strict=False)
        ] + ([parts[-1]] if len(parts) % 2 and len(parts) > 1 else [])
    return parts[0]


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
