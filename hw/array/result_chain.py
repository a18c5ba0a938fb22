"""The result chain of a PE: finished sums wait in it, and move down the column."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["ResultChain"]


class ResultChain(wiring.Component):
    """A shift register of ``length`` values: ``o`` is the value that came ``length`` moves ago.

    With ``lut_ram`` the values stay where they are, in a ring of LUT RAM, and a counter moves. LUT
    RAM holds 16 bits in a LUT, so the ring takes fewer cells than ``length`` flip-flops for each
    bit. No reset clears it: the first ``length`` values of ``o`` after a reset are undefined.

    Parameters
    ----------
    shape : shape
    length : int
    lut_ram : str, optional
        Value of the attribute ``ram_style`` that selects LUT RAM. None: flip-flops.

    Attributes
    ----------
    move : In, 1 bit
        Take ``i``.
    i, o : In and Out, ``shape``
    """

    def __init__(self, *, shape, length, lut_ram=None):
        self.length = length
        self.lut_ram = lut_ram if length > 1 else None
        super().__init__({"move": In(1), "i": In(shape), "o": Out(shape)})

    def elaborate(self, platform):
        m = Module()
        if self.lut_ram is None:
            self._flip_flops(m)
        else:
            self._ring(m)
        return m

    def _flip_flops(self, m):
        previous = self.i
        for n in range(self.length):
            register = Signal.like(self.i, name=f"chain_{n}")
            with m.If(self.move):
                m.d.sync += register.eq(previous)
            previous = register
        m.d.comb += self.o.eq(previous)

    def _ring(self, m):
        m.submodules.ring = ring = Memory(
            shape=self.i.shape(), depth=self.length, init=[],
            attrs={"no_rw_check": 1, "ram_style": self.lut_ram},
        )
        oldest = Signal(ceil_log2(self.length))
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(oldest), self.o.eq(read.data),
            write.addr.eq(oldest), write.data.eq(self.i), write.en.eq(self.move),
        ]
        with m.If(self.move):
            m.d.sync += oldest.eq(Mux(oldest == self.length - 1, 0, oldest + 1))
