"""The gatherer: words of the result stream become the bytes of a frame."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.output.stream_packer import Result

__all__ = ["PayloadBuffer"]


class PayloadBuffer(wiring.Component):
    """Up to ``depth`` bytes of one job's results; no more are taken until these are gone.

    Parameters
    ----------
    bytes_out : int
    depth : int
        A power of two; at least ``bytes_out``.
    target : str
        That of a Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    full : Out
        The frame is there: the job has ended, or it takes no more.
    length : Out
        Bytes of results in it.
    facts : Out
        ``tag``, ``last`` and ``status`` of its last word.
    byte : Out
        The byte that is due: 4 cycles after ``full``, 3 after the one before was taken.
    take : In
        Pulse: on to the next byte.
    done : In
        Pulse: on to the next frame.
    """

    def __init__(self, *, bytes_out, depth, target):
        self.bytes_out = bytes_out
        self.depth = depth
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "full": Out(1),
            "length": Out(range(depth + 1)),
            "facts": Out(data.StructLayout({"tag": 16, "last": 8, "status": 8})),
            "byte": Out(8),
            "take": In(1),
            "done": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Bank(width=8, depth=self.depth, target=self.target)
        word = Signal(8 * self.bytes_out)
        byte = Signal(ceil_log2(self.bytes_out))
        due = Signal(range(self.depth))
        ready = Signal(init=1)
        m.d.comb += self.results.ready.eq(ready)
        m.d.comb += [memory.read_addr.eq(due), self.byte.eq(memory.read_data)]
        m.d.sync += [
            memory.write_addr.eq(self.length), memory.write_data.eq(word.word_select(byte, 8)),
            memory.write_en.eq(0),
        ]
        with m.If(self.take):
            m.d.sync += due.eq(due + 1)
        with m.FSM():
            with m.State("WORD"):
                m.d.sync += word.eq(self.results.payload.data)
                with m.If(self.results.valid & self.results.ready):
                    m.d.sync += [
                        ready.eq(0),
                        self.facts.tag.eq(self.results.payload.tag),
                        self.facts.last.eq(self.results.payload.last),
                        self.facts.status.eq(self.results.payload.status),
                    ]
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.sync += memory.write_en.eq(1)
                m.d.sync += [self.length.eq(self.length + 1), byte.eq(byte + 1)]
                with m.If(byte == self.bytes_out - 1):
                    m.d.sync += byte.eq(0)
                    m.next = "LOOK"
            with m.State("LOOK"):
                with m.If(self.facts.last.any() | (self.length == self.depth)):
                    m.next = "FULL"
                with m.Else():
                    m.d.sync += ready.eq(1)
                    m.next = "WORD"
            with m.State("FULL"):
                m.d.comb += self.full.eq(1)
                with m.If(self.done):
                    m.d.sync += [self.length.eq(0), due.eq(0), ready.eq(1)]
                    m.next = "WORD"
        return m
