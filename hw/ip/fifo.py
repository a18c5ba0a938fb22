"""A queue in a bank of memory, whose head is the bank's own output register."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.memory.bank import Bank

__all__ = ["Fifo"]


class Fifo(wiring.Component):
    """``depth`` words, one in and one out a cycle.

    A word is on offer no later than :attr:`LATENCY` cycles after it came, or the one before left.

    Parameters
    ----------
    width, depth : int
        ``depth`` is a power of two.
    target : str
        That of a Config.

    Attributes
    ----------
    i : In, stream of ``width`` bits
    o : Out, stream of ``width`` bits
    put, taken : Out
        Words so far, modulo ``2 * depth``: that came in, that went out.
    """

    LATENCY = 1 + Bank.LATENCY

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        count = range(2 * depth)
        super().__init__({
            "i": In(stream.Signature(width)), "o": Out(stream.Signature(width)),
            "put": Out(count), "taken": Out(count),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=self.width, depth=self.depth, target=self.target)
        asked = Signal.like(self.put)  # words whose read has begun
        held = Signal()  # the bank's first step has a word; the second's is on offer
        moves = ~self.o.valid | self.o.ready
        full = (self.put ^ self.taken) == self.depth
        m.d.comb += [
            self.i.ready.eq(~full),
            bank.write.eq(self.i.valid & ~full), bank.place.eq(self.put),
            bank.data.eq(self.i.payload),
            bank.en.eq(moves), bank.address.eq(asked), self.o.payload.eq(bank.word),
        ]
        with m.If(bank.write):
            m.d.sync += self.put.eq(self.put + 1)
        with m.If(moves):
            m.d.sync += [held.eq(asked != self.put), self.o.valid.eq(held)]
            with m.If(asked != self.put):
                m.d.sync += asked.eq(asked + 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.taken.eq(self.taken + 1)
        return m
