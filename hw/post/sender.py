"""The sender: the last station, where chunks become words of the result stream and jobs end."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Result", "Sender"]


class Result(data.StructLayout):
    """A word of the result stream."""

    def __init__(self, *, bytes_out):
        super().__init__({"data": 8 * bytes_out, "last": 1, "status": 8, "tag": 16})


class Sender(wiring.Component):
    """Cuts a chunk into words of ``bytes_out`` bytes, low bytes first; silent chunks are swallowed.

    Combinational from ``chunks`` to ``results``; of several words a chunk, one leaves a cycle.

    Parameters
    ----------
    chunk : shape
    bytes_out : int

    Attributes
    ----------
    chunks : In, stream of `weft.hw.post.collector.Chunk`
    results : Out, stream of `Result`
    retire : Out
        Pulse: a job has ended; its last word is taken.
    """

    def __init__(self, *, chunk, bytes_out):
        self.bytes_out = bytes_out
        super().__init__({
            "chunks": In(stream.Signature(chunk)),
            "results": Out(stream.Signature(Result(bytes_out=bytes_out))),
            "retire": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        chunk = self.chunks.payload
        word = self.results.payload
        bits = 8 * self.bytes_out
        sums = chunk.sums.as_value()
        words = max(1, len(sums) // bits)
        index = Signal(range(words))
        end = (index == words - 1) | (chunk.status != 0)
        taken = self.results.valid & self.results.ready
        m.d.comb += [
            word.data.eq(sums.word_select(index, min(bits, len(sums)))),
            word.last.eq(chunk.last & end),
            word.status.eq(chunk.status),
            word.tag.eq(chunk.tag),
            self.results.valid.eq(self.chunks.valid & ~chunk.silent),
            self.chunks.ready.eq((self.results.ready & end) | chunk.silent),
            self.retire.eq(self.chunks.valid & self.chunks.ready & chunk.last),
        ]
        with m.If(taken):
            m.d.sync += index.eq(index + 1)
            with m.If(end):
                m.d.sync += index.eq(0)
        return m
