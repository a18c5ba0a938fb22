"""The descriptor registers: sixteen words that are written in any order, then filed at once."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["WORDS", "DescriptorRegs"]

WORDS = 16


class DescriptorRegs(wiring.Component):
    """Keeps the words of the next descriptor; submitted, they leave in order, and stay.

    After a reset all are 0.

    Attributes
    ----------
    write : In, index : In, data : In
        Word ``index`` becomes ``data``.
    word : Out
        Word ``index``.
    submit : In
        Pulse: file them.
    filing : Out
        The words are about to leave, or to become 0: none may be written, read or submitted.
    o : Out, stream of 32 bits
    """

    def __init__(self):
        super().__init__({
            "write": In(1), "index": In(range(WORDS)), "data": In(32), "word": Out(32),
            "submit": In(1), "filing": Out(1, init=1), "o": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=WORDS, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        clears = Signal(init=1)
        count = Signal(range(WORDS))
        moves = self.filing & (clears | self.o.ready)
        m.d.comb += [
            write.en.eq(self.write | clears),
            write.addr.eq(Mux(clears, count, self.index)),
            write.data.eq(Mux(clears, 0, self.data)),
            read.addr.eq(Mux(self.filing, count, self.index)),
            self.word.eq(read.data), self.o.payload.eq(read.data),
            self.o.valid.eq(self.filing & ~clears),
        ]
        m.d.sync += count.eq(count + moves)
        with m.If(moves & (count == WORDS - 1)):
            m.d.sync += [self.filing.eq(0), clears.eq(0)]
        with m.If(self.submit):
            m.d.sync += self.filing.eq(1)
        return m
