"""A bank of memory that is read in two steps: blocks of the ECP5, or what a tool makes of it."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.mux_tree import mux_tree

__all__ = ["Bank"]

BITS = 14  # of a block's address, which counts bits
WIDTHS = (36, 18, 9, 4, 2, 1)  # that a block may have, each of twice as many words


class Bank(wiring.Component):
    """``word`` is what lies at ``address``, LATENCY steps (cycles with ``en``) later.

    A block has 512 words of 36 bits, 1024 of 18 and so on; a bank takes the widest that is deep
    enough, side by side, so that nothing but wires follows the output registers. An iCE40's have no
    register but the one that they read into: there the address waits, not the word. What is read of
    a word that is written before it is out is left open.

    It may be read in ``parts``, the lowest bits of ``address`` choosing one, and be written a byte
    at a time: then a block holds 32 bits of each word, and what blocks cannot is left to a tool.

    Parameters
    ----------
    width, depth : int
    target : str
        Of the Config: on "ecp5", and where there is a platform, it is made of blocks.
    parts : int
        Of a word: a power of two.
    bytewise : bool
        Each byte of a word has a ``write`` of its own.

    Attributes
    ----------
    write, place, data : In
        Write ``data`` to ``place``.
    en : In
        The read moves on.
    address : In
    word : Out

    Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide: DP16KD. Which half of a word
    of 36 bits comes out at which port: as Yosys has it (techlibs/lattice, brams_map_16kd.v).
    """

    LATENCY = 2

    def __init__(self, *, width, depth, target, parts=1, bytewise=False):
        self.width = width
        self.depth = depth
        self.target = target
        self.parts = parts
        self.bytewise = bytewise
        place = ceil_log2(depth)
        super().__init__({
            "write": In(width // 8 if bytewise else 1), "place": In(place), "data": In(width),
            "en": In(1, init=1),
            "address": In(ceil_log2(parts) + place), "word": Out(width // parts),
        })

    def elaborate(self, platform):
        m = Module()
        blocks = self.target == "ecp5" and platform is not None
        if self.parts > 1 or self.bytewise:
            share = 32 // self.parts  # bits of a part that a block holds
            fits = self.depth <= 512 and self.width % 32 == 0 and share >= 1 + 7 * self.bytewise
            if blocks and fits:
                for n in range(self.width // 32):
                    m.submodules[f"block_{n}"] = self._mixed(n, share)
                return m
        elif blocks and self.depth <= 1 << BITS:
            level = max(0, ceil_log2(self.depth) - 9)
            for first in range(0, self.width, WIDTHS[level]):
                m.submodules[f"block_{first}"] = self._block(first, level)
            return m
        # With this, and a register of our own, a tool need not add what looks at both addresses.
        m.submodules.memory = memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        write = memory.write_port(granularity=8 if self.bytewise else None)
        m.d.comb += [
            write.en.eq(self.write), write.addr.eq(self.place), write.data.eq(self.data),
        ]
        cut = ceil_log2(self.parts)
        if self.target in ("ice40hx", "ice40up"):
            read, address = memory.read_port(), Signal.like(self.address, reset_less=True)
            m.d.comb += [
                read.en.eq(self.en), read.addr.eq(address[cut:]),
                self.word.eq(self._part(m, read.data, address)),
            ]
            with m.If(self.en):
                m.d.sync += address.eq(self.address)
            return m
        read, held = memory.read_port(domain="comb"), Signal(self.width, reset_less=True)
        m.d.comb += read.addr.eq(self.address[cut:])
        with m.If(self.en):
            m.d.sync += [held.eq(read.data), self.word.eq(self._part(m, held, self.address))]
        return m

    def _part(self, m, word, address):
        """The part of ``word`` that ``address`` chose a step before."""
        if self.parts == 1:
            return word
        part = Signal(ceil_log2(self.parts), reset_less=True)
        with m.If(self.en):
            m.d.sync += part.eq(address)
        return mux_tree(word, part, self.width // self.parts)

    def _block(self, first, level):
        """A block of the bits from ``first`` on: port A writes, port B reads.

        Where it is 36 bits wide, both ports' pins hold a half of what is written, and of a word.
        """
        width = WIDTHS[level]
        last = min(first + width, self.width)
        skipped = BITS - 9 - level  # address bits within a word; enables, of bytes that are written
        ports = {"i_WEA": self.write, "i_WEB": Const(0)}
        for n in range(36):
            port, pin = "AB"[n // 18], n % 18
            out = port if width == 36 else "BA"[n // 18]
            used = first + n < last
            ports[f"i_DI{port}{pin}"] = self.data[first + n] if used else Const(0)
            ports[f"o_DO{out}{pin}"] = self.word[first + n] if used else Signal(name="open")
        for n in range(BITS):
            inside = n - skipped
            enable = Const(int(width >= 18 and n < width // 9))
            known = 0 <= inside < len(self.address)
            ports[f"i_ADA{n}"] = self.place[inside] if known else enable
            ports[f"i_ADB{n}"] = self.address[inside] if known else Const(0)
        return self._instance(ports, width, width)

    def _mixed(self, block, share):
        """A block of ``share`` bits of each part, of 9 bits to a byte: 36 written, fewer read."""
        size = self.width // self.parts
        cut = ceil_log2(self.parts)
        ports = {"i_WEA": Const(1) if self.bytewise else self.write, "i_WEB": Const(0)}
        for port in "AB":
            ports |= {f"i_DI{port}{n}": Const(0) for n in range(18)}
            ports |= {f"i_AD{port}{n}": Const(0) for n in range(5)}
        for n in range(32):
            pin, part = n + n // 8, n // share
            bit = part * size + block * share + n % share
            ports[f"i_DI{'AB'[pin // 18]}{pin % 18}"] = self.data[bit]
            if n % 8 == 0:
                ports[f"i_ADA{n // 8}"] = self.write[bit // 8] if self.bytewise else Const(1)
            if n < share:
                out = "AB"[pin // 18] if share == 32 else "B"
                ports[f"o_DO{out}{pin % 18}"] = self.word[block * share + n]
        for n in range(9):
            known = n < len(self.place)
            ports[f"i_ADA{5 + n}"] = self.place[n] if known else Const(0)
            ports[f"i_ADB{5 + n}"] = self.address[cut + n] if known else Const(0)
        for n in range(cut):
            ports[f"i_ADB{5 - cut + n}"] = self.address[n]
        return self._instance(ports, 36, {32: 36, 16: 18, 8: 9}.get(share, share))

    def _instance(self, ports, written, read):
        for port, width, moves in (("A", written, Const(1)), ("B", read, self.en)):
            ports |= {
                f"i_CLK{port}": ClockSignal(), f"i_CE{port}": moves, f"i_OCE{port}": self.en,
                f"i_RST{port}": Const(0), **{f"i_CS{port}{n}": Const(0) for n in range(3)},
                f"p_DATA_WIDTH_{port}": width, f"p_REGMODE_{port}": "OUTREG",
                f"p_CSDECODE_{port}": "0b000",
            }
        return Instance("DP16KD", p_RESETMODE="SYNC", p_GSR="DISABLED", **ports)
