"""A queue in a bank of memory, whose head is the bank's own output register."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.buffers.lfsr import lfsr_next

__all__ = ["Fifo"]


class Fifo(wiring.Component):
    """Words in order, one in and one out a cycle, all but one of as many as the memory has.

    A word is on offer no later than :attr:`LATENCY` cycles after it came, or the one before left.

    Parameters
    ----------
    width, depth : int
        ``depth`` is a power of two, of bits that `weft.hw.buffers.lfsr` knows.
    target : str
        That of a Config.

    Attributes
    ----------
    i : In, stream of ``width`` bits
    o : Out, stream of ``width`` bits
    follows : Out
        Whatever happens in this cycle, there is a word on offer in the next.
    words : Out
        How many are here, the one on offer among them.
    """

    LATENCY = 1 + Bank.LATENCY

    def __init__(self, *, width, depth, target):
        self.width = width
        self.depth = depth
        self.target = target
        super().__init__({
            "i": In(stream.Signature(width)), "o": Out(stream.Signature(width)),
            "follows": Out(1), "words": Out(range(depth)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=self.width, depth=self.depth, target=self.target)
        put, asked = Signal(ceil_log2(self.depth)), Signal(ceil_log2(self.depth))  # the next ones
        puts, waits, takes = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.words.all()), puts.eq(self.i.valid & self.i.ready),
            takes.eq(self.o.valid & self.o.ready), waits.eq(asked != put),
            bank.read_en.eq(~self.o.valid | self.o.ready), bank.read_addr.eq(asked),
            bank.write_en.eq(puts), bank.write_addr.eq(put), bank.write_data.eq(self.i.payload),
            self.o.payload.eq(bank.read_data),
        ]
        with m.If(puts):
            m.d.sync += put.eq(lfsr_next(put))
        with m.If(bank.read_en & waits):
            m.d.sync += asked.eq(lfsr_next(asked))
        # The bank's first step has a word; the second's is on offer.
        with m.If(bank.read_en):
            m.d.sync += [self.follows.eq(waits), self.o.valid.eq(self.follows)]
        with m.If(puts != takes):
            m.d.sync += self.words.eq(self.words + Mux(puts, 1, -1))
        return m
