"""The corrector: subtracts the correction terms of a fast inner product from the sums."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.output.operand_sums import PairSums
from weft.latencies import CORRECTION

__all__ = ["Corrector"]


class Corrector(wiring.Component):
    """``C[i, j] = S[i, j] - (pairs(A, i) + pairs(B, j))``.

    The terms are read while the sums are read from the result buffer.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    lanes : int
    writes : pair of shapes
        The shapes of ``a`` and ``b``.
    target : str
        The target of the Config.

    Attributes
    ----------
    a, b : In, the shapes from ``writes``
        Buffer writes of the loader.
    request : In, ``valid`` and a ``chunk``
        The chunk that is requested in this cycle.
    sums : In, ``lanes`` x 32 bits
        The sums of the chunk, SUMS cycles after the request.
    corrected : Out, ``lanes`` x 32 bits
        LATENCY cycles after the request.
    """

    # Register the chunk; read the terms; add them. Then subtract.
    LATENCY = CORRECTION
    SUMS = LATENCY - 1

    def __init__(self, *, geometries, chunk, lanes, writes, target):
        self.geometries = geometries
        self.writes = writes
        self.target = target
        self.lanes = lanes
        values = data.ArrayLayout(signed(32), lanes)
        super().__init__({
            "a": In(writes[0]),
            "b": In(writes[1]),
            "request": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(values),
            "corrected": Out(values),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.pairs = pairs = PairSums(
            geometries=self.geometries, writes=self.writes, counts=[1, self.lanes],
            target=self.target,
        )
        chunk = Signal.like(self.request.chunk, reset_less=True)
        m.d.sync += chunk.eq(self.request.chunk)
        m.d.comb += [
            pairs.write_0.eq(self.a),
            pairs.write_1.eq(self.b),
            pairs.page_0.eq(chunk.a_page),
            pairs.index_0.eq(chunk.row),
            pairs.page_1.eq(chunk.b_page),
            pairs.index_1.eq(chunk.index),
        ]
        for lane in range(self.lanes):
            correction = Signal(signed(32), name=f"correction_{lane}", reset_less=True)
            m.d.sync += [
                correction.eq(pairs.sums_0[0] + pairs.sums_1[lane]),
                self.corrected[lane].eq(self.sums[lane] - correction),
            ]
        return m
