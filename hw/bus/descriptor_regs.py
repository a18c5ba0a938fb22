"""The descriptor registers: sixteen words, written in any order and submitted together."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["WORDS", "DescriptorRegs"]

WORDS = 16


class DescriptorRegs(wiring.Component):
    """Holds the words of the next descriptor; ``submit`` sends a copy of them in order.

    After a reset it writes 0 to all words.

    Attributes
    ----------
    write : In, 1 bit
        Writes ``data`` to word ``index``; not while ``submitting``.
    index : In, ``range(WORDS)``
    data : In, 32 bits; valid with ``write``
    word : Out, 32 bits
        Word ``index``; valid while not ``submitting``.
    submit : In, 1 bit
        Pulse: sends all words; not while ``submitting``.
    submitting : Out, 1 bit
        The words are being sent, or cleared after a reset.
    o : Out, stream of 32 bits
    """

    def __init__(self):
        super().__init__({
            "write": In(1), "index": In(range(WORDS)), "data": In(32), "word": Out(32),
            "submit": In(1), "submitting": Out(1, init=1), "o": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=WORDS, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        clearing = Signal(init=1)
        count = Signal(range(WORDS))
        advance = self.submitting & (clearing | self.o.ready)
        m.d.comb += [
            write.en.eq(self.write | clearing),
            write.addr.eq(Mux(clearing, count, self.index)),
            write.data.eq(Mux(clearing, 0, self.data)),
            read.addr.eq(Mux(self.submitting, count, self.index)),
            self.word.eq(read.data), self.o.payload.eq(read.data),
            self.o.valid.eq(self.submitting & ~clearing),
        ]
        m.d.sync += count.eq(count + advance)
        with m.If(advance & (count == WORDS - 1)):
            m.d.sync += [self.submitting.eq(0), clearing.eq(0)]
        with m.If(self.submit):
            m.d.sync += self.submitting.eq(1)
        return m
