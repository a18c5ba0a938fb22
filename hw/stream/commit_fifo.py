"""Bytes that become words, once all that came with them is known to be right."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import Bank

__all__ = ["CommitFifo"]


class CommitFifo(wiring.Component):
    """A queue of ``depth`` bytes that gives words of ``bytes_out``; what is put can be taken back.

    A byte that is put counts once it is kept, along with all before it. Three cycles a byte go by
    on its way out. Whoever puts looks at ``used`` first.

    Parameters
    ----------
    bytes_out : int
        A power of two.
    depth : int
        A power of two.
    target : str
        That of a Config.

    Attributes
    ----------
    put : In, value : In
        A byte comes in.
    keep : In
        Pulse: the bytes put so far count.
    drop : In
        The bytes that are not kept are gone.
    used : Out
        Bytes kept and not yet out, as of the cycle before.
    words : Out, stream of ``bytes_out`` bytes, the first one lowest
    """

    def __init__(self, *, bytes_out, depth, target):
        self.depth = depth
        self.target = target
        super().__init__({
            "put": In(1),
            "value": In(8),
            "keep": In(1),
            "drop": In(1),
            "used": Out(range(depth + 1)),
            "words": Out(stream.Signature(8 * bytes_out)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Bank(width=8, depth=self.depth, target=self.target)
        head, kept, tail = (Signal(range(2 * self.depth), name=n) for n in ("head", "kept", "tail"))
        m.d.comb += memory.read_addr.eq(tail)
        m.d.sync += [
            memory.write_addr.eq(head), memory.write_data.eq(self.value),
            memory.write_en.eq(self.put),
        ]
        m.d.sync += self.used.eq(kept - tail)
        with m.If(self.put):
            m.d.sync += head.eq(head + 1)
        with m.If(self.keep):
            m.d.sync += kept.eq(head)
        with m.If(self.drop):
            m.d.sync += head.eq(kept)

        word = self.words.payload
        index = Signal(range(len(word) // 8))
        there = Signal()
        m.d.sync += there.eq(kept != tail)
        with m.If(self.words.ready):
            m.d.sync += self.words.valid.eq(0)
        with m.FSM():
            with m.State("WAIT"):  # what is there, and the memory's answer, are of tail as it is
                m.next = "LOOK"
            with m.State("LOOK"):
                with m.If(there & ~self.words.valid):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += [
                    word.eq(Cat(word, memory.read_data)[8:]),
                    tail.eq(tail + 1), index.eq(index + 1),
                ]
                with m.If(index == len(word) // 8 - 1):
                    m.d.sync += [index.eq(0), self.words.valid.eq(1)]
                m.next = "WAIT"
        return m
