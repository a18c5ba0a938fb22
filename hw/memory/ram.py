"""A memory that is read in two cycles: a block of the ECP5, or what a tool makes of it."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Ram"]

WIDTH, DEPTH = 36, 512  # of a block


class Ram(wiring.Component):
    """``read.data`` is the word at ``read.address``, LATENCY cycles later.

    What is read of a word that is written before it is out is left open: no device has to look for
    that. A block's output register is half of what makes it fast; one of the iCE40 has none: there
    the address waits, not the word.

    Parameters
    ----------
    width, depth : int
    target : str
        That of a Config: ecp5 has blocks of up to 512 words.

    Attributes
    ----------
    en : In
        Write ``data`` to ``place``.
    place, data : In
    address : In
    word : Out

    Source: Lattice FPGA-TN-02204, ECP5 memory usage guide: DP16KD as a pseudo dual port.
    """

    LATENCY = 2

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        address = ceil_log2(depth)
        super().__init__({
            "en": In(1), "place": In(address), "data": In(width),
            "address": In(address), "word": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        if self.target == "ecp5" and platform is not None and self.depth <= DEPTH:
            for first in range(0, self.width, WIDTH):
                m.submodules[f"block_{first}"] = self._block(first)
            return m
        m.submodules.memory = memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        write = memory.write_port()
        m.d.comb += [
            write.en.eq(self.en), write.addr.eq(self.place), write.data.eq(self.data),
        ]
        if self.target in ("ice40hx", "ice40up"):
            read, address = memory.read_port(), Signal.like(self.address, reset_less=True)
            m.d.sync += address.eq(self.address)
            m.d.comb += [read.addr.eq(address), self.word.eq(read.data)]
            return m
        read, held = memory.read_port(domain="comb"), Signal(self.width, reset_less=True)
        m.d.comb += read.addr.eq(self.address)
        m.d.sync += [held.eq(read.data), self.word.eq(held)]
        return m

    def _block(self, first):
        """36 bits, from ``first`` on; written at port A, read at port B."""
        width = min(WIDTH, self.width - first)
        data, word = self.data[first : first + width], self.word[first : first + width]
        half = WIDTH // 2
        ports = {"i_CLKA": ClockSignal(), "i_CLKB": ClockSignal(), "i_WEA": Const(1)}
        for n in range(WIDTH):
            bank, pin = "AB"[n // half], n % half
            ports[f"i_DI{bank}{pin}"] = data[n] if n < width else Const(0)
            ports[f"o_DO{bank}{pin}"] = word[n] if n < width else Signal(name="open")
        for n in range(14):
            # The lowest bits of a 36-bit port's address are enables of its 9-bit parts.
            part = n - 5
            ports[f"i_ADA{n}"] = self.en if n < 4 else _bit(self.place, part)
            ports[f"i_ADB{n}"] = _bit(self.address, part)
        for port in "AB":
            ports |= {
                f"p_DATA_WIDTH_{port}": WIDTH, f"p_REGMODE_{port}": "OUTREG",
                f"p_CSDECODE_{port}": "0b000", f"i_CE{port}": Const(1), f"i_OCE{port}": Const(1),
                f"i_RST{port}": Const(0), **{f"i_CS{port}{n}": Const(0) for n in range(3)},
            }
        return Instance("DP16KD", i_WEB=Const(0), p_RESETMODE="SYNC", p_GSR="DISABLED", **ports)


def _bit(address, n):
    return address[n] if 0 <= n < len(address) else Const(0)
