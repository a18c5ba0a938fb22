"""One bank of on-chip memory: block RAM of the ECP5, or a memory that a tool maps to blocks."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.mux_tree import mux_tree

__all__ = ["Bank"]

BITS = 14  # address bits of a DP16KD; the address counts bits
WIDTHS = (36, 18, 9, 4, 2, 1)  # port widths of a DP16KD: half the width, twice the words


class Bank(wiring.Component):
    """``read_data <= memory[read_addr]``, LATENCY cycles of ``read_en`` later.

    A DP16KD block has 512 words of 36 bits, 1024 of 18 bits and so on. The bank uses the widest
    shape that is deep enough, and puts blocks side by side. So only wires follow the output
    registers. A block of the iCE40 has no output register: the bank registers the address instead.
    A read is undefined if its word is written before the read data is valid.

    The bank can be read in ``parts`` of a word: the lowest bits of ``read_addr`` select the part.
    It can be written byte by byte. In these two cases a block holds 32 bits of each word; a shape
    that does not fit the blocks is left to the tool.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and number of words.
    target : str
        As in the Config. On "ecp5", with a platform, the bank instantiates DP16KD blocks.
    parts : int
        Parts of a word that are read separately; a power of two.
    bytewise : bool
        Each byte of a word has its own bit of ``write_en``.

    Attributes
    ----------
    write_en : In, 1 bit, or 1 bit a byte if ``bytewise``
    write_addr : In, word address
    write_data : In, ``width`` bits
    read_en : In
        Advances the read pipeline; the pipeline holds its state while 0.
    read_addr : In, ``Cat(part, word address)``
    read_data : Out, ``width / parts`` bits

    Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide: DP16KD. The port at which
    each half of a 36-bit word appears: as in Yosys (techlibs/lattice, brams_map_16kd.v).
    """

    LATENCY = 2

    def __init__(self, *, width, depth, target, parts=1, bytewise=False):
        self.width = width
        self.depth = depth
        self.target = target
        self.parts = parts
        self.bytewise = bytewise
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
        blocks = self.target == "ecp5" and platform is not None
        if self.parts > 1 or self.bytewise:
            share = 32 // self.parts  # bits of each part that a block holds
            fits = self.depth <= 512 and self.width % 32 == 0 and share >= 1 + 7 * self.bytewise
            if blocks and fits:
                for n in range(self.width // 32):
                    m.submodules[f"block_{n}"] = self._mixed_block(n, share)
                return m
        elif blocks and self.depth <= 1 << BITS:
            level = max(0, ceil_log2(self.depth) - 9)
            for first in range(0, self.width, WIDTHS[level]):
                m.submodules[f"block_{first}"] = self._block(first, level)
            return m
        self._inferred(m)
        return m

    def _inferred(self, m):
        """A memory that the tool maps to blocks, or that a simulator models."""
        # With `no_rw_check` and a register after the read, a tool adds no address comparison.
        m.submodules.memory = memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        write = memory.write_port(granularity=8 if self.bytewise else None)
        m.d.comb += [
            write.en.eq(self.write_en),
            write.addr.eq(self.write_addr),
            write.data.eq(self.write_data),
        ]
        part_bits = ceil_log2(self.parts)
        if self.target in ("ice40hx", "ice40up"):
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

    def _block(self, first, level):
        """A block for the bits from ``first`` on: port A writes, port B reads.

        In the 36-bit shape the data pins of both ports form one word, for writes and for reads.
        """
        width = WIDTHS[level]
        end = min(first + width, self.width)
        skipped = BITS - 9 - level  # low address pins: bit of the word, or byte write enables
        ports = {"i_WEA": self.write_en, "i_WEB": Const(0)}
        for n in range(36):
            port, pin = "AB"[n // 18], n % 18
            out = port if width == 36 else "BA"[n // 18]
            used = first + n < end
            ports[f"i_DI{port}{pin}"] = self.write_data[first + n] if used else Const(0)
            ports[f"o_DO{out}{pin}"] = self.read_data[first + n] if used else Signal(name="open")
        for n in range(BITS):
            bit = n - skipped
            enable = Const(int(width >= 18 and n < width // 9))
            used = 0 <= bit < len(self.read_addr)
            ports[f"i_ADA{n}"] = self.write_addr[bit] if used else enable
            ports[f"i_ADB{n}"] = self.read_addr[bit] if used else Const(0)
        return self._instance(ports, width, width)

    def _mixed_block(self, block, share):
        """A block that is written 36 bits wide and read in narrower parts.

        It holds ``share`` bits of each part of the word; 9 bits of a block hold 8 bits of data.
        """
        size = self.width // self.parts
        part_bits = ceil_log2(self.parts)
        ports = {"i_WEA": Const(1) if self.bytewise else self.write_en, "i_WEB": Const(0)}
        for port in "AB":
            ports |= {f"i_DI{port}{n}": Const(0) for n in range(18)}
            ports |= {f"i_AD{port}{n}": Const(0) for n in range(5)}
        for n in range(32):
            pin, part = n + n // 8, n // share
            bit = part * size + block * share + n % share
            ports[f"i_DI{'AB'[pin // 18]}{pin % 18}"] = self.write_data[bit]
            if n % 8 == 0:
                ports[f"i_ADA{n // 8}"] = self.write_en[bit // 8] if self.bytewise else Const(1)
            if n < share:
                out = "AB"[pin // 18] if share == 32 else "B"
                ports[f"o_DO{out}{pin % 18}"] = self.read_data[block * share + n]
        for n in range(9):
            used = n < len(self.write_addr)
            ports[f"i_ADA{5 + n}"] = self.write_addr[n] if used else Const(0)
            ports[f"i_ADB{5 + n}"] = self.read_addr[part_bits + n] if used else Const(0)
        for n in range(part_bits):
            ports[f"i_ADB{5 - part_bits + n}"] = self.read_addr[n]
        return self._instance(ports, 36, {32: 36, 16: 18, 8: 9}.get(share, share))

    def _instance(self, ports, write_width, read_width):
        widths = ("A", write_width, Const(1)), ("B", read_width, self.read_en)
        for port, width, enable in widths:
            ports |= {
                f"i_CLK{port}": ClockSignal(),
                f"i_CE{port}": enable,
                f"i_OCE{port}": self.read_en,
                f"i_RST{port}": Const(0),
                **{f"i_CS{port}{n}": Const(0) for n in range(3)},
                f"p_DATA_WIDTH_{port}": width,
                f"p_REGMODE_{port}": "OUTREG",
                f"p_CSDECODE_{port}": "0b000",
            }
        return Instance("DP16KD", p_RESETMODE="SYNC", p_GSR="DISABLED", **ports)
