"""A queue in a bank of memory: its writer sees to it that there is room."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import Bank
from weft.hw.buffers.lfsr import lfsr_next

__all__ = ["DmaQueue"]


class DmaQueue(wiring.Component):
    """What is ``put`` comes out three cycles later, or when what was put before is taken.

    Parameters
    ----------
    shape : shape
    depth : int
        A power of two, of 2 to 7 or 9 bits: all but one of so many words wait in the memory.
    target : str
        That of a Config.

    Attributes
    ----------
    put, value : In
    whole : In
        What was put, and is put now, may come out: without a pause where it is wanted.
    o : Out, stream of ``shape``
        Its payload comes from a register.
    room : Out
        It may be put, for those who did not count.
    """

    def __init__(self, *, shape, depth, target):
        self.shape = shape
        self.depth = depth
        self.target = target
        super().__init__({
            "put": In(1),
            "value": In(shape),
            "whole": In(1, init=1),
            "o": Out(stream.Signature(shape)),
            "room": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(
            width=Shape.cast(self.shape).width, depth=self.depth, target=self.target
        )
        puts, gets = Signal(range(self.depth)), Signal(range(self.depth))
        end = Signal.like(puts)  # of what may come out
        moves, waits, follows = Signal(), Signal(), Signal()
        m.d.comb += [
            moves.eq(~self.o.valid | self.o.ready), waits.eq(end != gets),
            self.room.eq(lfsr_next(puts) != gets),
            bank.write_en.eq(self.put), bank.write_addr.eq(puts), bank.write_data.eq(self.value),
            bank.read_en.eq(moves), bank.read_addr.eq(gets), self.o.payload.eq(bank.read_data),
        ]
        with m.If(self.put):
            m.d.sync += puts.eq(lfsr_next(puts))
            with m.If(self.whole):
                m.d.sync += end.eq(lfsr_next(puts))
        with m.If(moves):
            m.d.sync += [follows.eq(waits), self.o.valid.eq(follows)]
        with m.If(moves & waits):
            m.d.sync += gets.eq(lfsr_next(gets))
        return m
