"""The correction terms of a fast inner product, taken off as results leave."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.post.sums import PairSums

__all__ = ["Corrector"]


class Corrector(wiring.Component):
    """``C[i, j] = S[i, j] - pairs(A, i) - pairs(B, j)``: two stages, each a cycle.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    chunk : shape
        `weft.hw.post.collector.Chunk`.
    writes : pair of shapes
        Of ``a`` and ``b``.

    Attributes
    ----------
    a, b : In
        What is loaded.
    i, o : In, Out, stream of chunks
    """

    LATENCY = 2

    def __init__(self, *, geometries, chunk, writes):
        self.geometries = geometries
        self.lanes = chunk["sums"].shape.length
        super().__init__({
            "a": In(writes[0]),
            "b": In(writes[1]),
            "i": In(stream.Signature(chunk)),
            "o": Out(stream.Signature(chunk)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.a = a = PairSums(geometry=self.geometries[0], write=self.a.shape())
        m.submodules.b = b = PairSums(geometry=self.geometries[1], write=self.b.shape())
        free = ~self.o.valid | self.o.ready
        r_valid = Signal()
        r_chunk = Signal.like(self.i.payload)
        out = self.o.payload
        m.d.comb += [
            self.i.ready.eq(free),
            a.write.eq(self.a),
            b.write.eq(self.b),
            a.read.eq(free),
            b.read.eq(free),
            a.page.eq(self.i.payload.a_page),
            b.page.eq(self.i.payload.b_page),
        ]
        with m.If(free):
            m.d.sync += [
                r_valid.eq(self.i.valid),
                r_chunk.eq(self.i.payload),
                self.o.valid.eq(r_valid),
                out.eq(r_chunk),
            ]
            row = Array(a.sums[e] for e in range(self.geometries[0].edge))[r_chunk.row]
            edge = self.geometries[1].edge
            for lane in range(min(self.lanes, edge)):
                column = Array(b.sums[c] for c in range(lane, edge, self.lanes))[r_chunk.chunk]
                m.d.sync += out.sums[lane].eq(r_chunk.sums[lane] - row - column)
        return m
