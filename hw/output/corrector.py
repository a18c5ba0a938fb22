"""The correction terms of a fast inner product, taken off as results leave."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.output.operand_sums import PairSums

__all__ = ["Corrector"]


class Corrector(wiring.Component):
    """``C[i, j] = S[i, j] - (pairs(A, i) + pairs(B, j))``.

    What is to be taken off is looked up while the sums are on their way from the result buffer.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    lanes : int
    writes : pair of shapes
        Of ``a`` and ``b``.
    target : str
        That of a Config.

    Attributes
    ----------
    a, b : In
        What is loaded.
    chunks : In, ``valid`` and a chunk
        Asked for.
    sums : In, ``lanes`` of them
        Those of the chunk, SUMS cycles later.
    corrected : Out
        LATENCY cycles after the chunk was asked for.
    """

    # The chunk held; what is taken off looked up, added up, and taken off.
    SUMS = 1 + PairSums.READ + 1
    LATENCY = SUMS + 1

    def __init__(self, *, geometries, chunk, lanes, writes, target):
        self.geometries = geometries
        self.writes = writes
        self.target = target
        self.lanes = lanes
        values = data.ArrayLayout(signed(32), lanes)
        super().__init__({
            "a": In(writes[0]),
            "b": In(writes[1]),
            "chunks": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(values),
            "corrected": Out(values),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.pairs = pairs = PairSums(
            geometries=self.geometries, writes=self.writes, counts=[1, self.lanes],
            target=self.target,
        )
        chunk = Signal.like(self.chunks.chunk, reset_less=True)
        m.d.sync += chunk.eq(self.chunks.chunk)
        m.d.comb += [
            pairs.write_0.eq(self.a),
            pairs.write_1.eq(self.b),
            pairs.page_0.eq(chunk.a_page),
            pairs.index_0.eq(chunk.row),
            pairs.page_1.eq(chunk.b_page),
            pairs.index_1.eq(chunk.chunk),
        ]
        for lane in range(self.lanes):
            off = Signal(signed(32), name=f"off_{lane}", reset_less=True)
            m.d.sync += [
                off.eq(pairs.sums_0[0] + pairs.sums_1[lane]),
                self.corrected[lane].eq(self.sums[lane] - off),
            ]
        return m
