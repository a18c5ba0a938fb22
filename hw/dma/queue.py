"""A queue in a memory that is read a cycle ahead: its writer sees to it that there is room."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """What is ``put`` comes out two cycles later, or when what was put before is taken.

    Parameters
    ----------
    shape : shape
    depth : int
        A power of two. One more may be inside.

    Attributes
    ----------
    put, value : In
    o : Out, stream of ``shape``
    empty : Out
        Nothing is inside but what is on offer.
    room : Out
        It may be put, for those who did not count.
    """

    def __init__(self, *, shape, depth):
        self.shape = shape
        self.depth = depth
        super().__init__({
            "put": In(1),
            "value": In(shape),
            "o": Out(stream.Signature(shape)),
            "empty": Out(1),
            "room": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=self.shape, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        write, read = memory.write_port(), memory.read_port()
        puts, gets = Signal(range(self.depth)), Signal(range(self.depth))
        m.d.comb += [
            self.empty.eq(puts == gets), self.room.eq((puts + 1)[: len(puts)] != gets),
            write.addr.eq(puts), write.en.eq(self.put), write.data.eq(self.value),
            read.addr.eq(gets), read.en.eq(~self.o.valid | self.o.ready),
            self.o.payload.eq(read.data),
        ]
        with m.If(self.put):
            m.d.sync += puts.eq(puts + 1)
        with m.If(read.en):
            m.d.sync += self.o.valid.eq(~self.empty)
        with m.If(read.en & ~self.empty):
            m.d.sync += gets.eq(gets + 1)
        return m
