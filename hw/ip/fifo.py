"""A queue in a bank of memory, whose head is the bank's own output register."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.memory.bank import Bank

__all__ = ["Fifo"]


class Fifo(wiring.Component):
    """Words in order, one in and one out a cycle, as many as fit but for :attr:`SPARE` of them.

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
    room : Out
        Words that may come at once.
    put : Out
        Words that came so far, modulo ``depth``.
    some : Out
        There are words behind the one on offer.
    """

    LATENCY = 1 + Bank.LATENCY
    SPARE = 2 * Bank.LATENCY  # those that are being read, and so that counts never meet

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        most = depth - self.SPARE
        super().__init__({
            "i": In(stream.Signature(width)), "o": Out(stream.Signature(width)),
            "room": Out(range(most + 1), init=most), "put": Out(range(depth)), "some": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=self.width, depth=self.depth, target=self.target)
        asked = Signal.like(self.put)  # words whose read has begun
        held = Signal()  # the bank's first step has a word; the second's is on offer
        puts = Signal()
        asks = Signal()
        waits = Signal()
        m.d.comb += [
            self.i.ready.eq(self.room != 0), puts.eq(self.i.valid & self.i.ready),
            waits.eq(asked != self.put), self.some.eq(waits | held),
            bank.en.eq(~self.o.valid | self.o.ready), asks.eq(waits & bank.en),
            bank.write.eq(puts), bank.place.eq(self.put), bank.data.eq(self.i.payload),
            bank.address.eq(asked), self.o.payload.eq(bank.word),
        ]
        m.d.sync += [self.put.eq(self.put + puts), asked.eq(asked + asks)]
        with m.If(puts != asks):
            m.d.sync += self.room.eq(self.room + Mux(puts, -1, 1))
        with m.If(bank.en):
            m.d.sync += [held.eq(waits), self.o.valid.eq(held)]
        return m
