"""What sums go through to become results: stages that never wait."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ResultPipeline"]


class ResultPipeline(wiring.Component):
    """Makes results of the sums of a chunk, LATENCY cycles after the chunk was asked for.

    What is needed for it is looked up while the sums are on their way.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    acc : shape
    lanes : int
    raw : int
        Cycles in which sums come.
    writes : dict of shapes
        Of what is loaded and used here, by its name.

    Attributes
    ----------
    <name> : In
        What is loaded, for each of ``writes``.
    chunks : In, ``valid`` and a chunk
        Asked for.
    sums : In, ``lanes`` of them
        Those of the chunk, ``raw`` cycles later.
    results : Out
    """

    LATENCY: int

    def __init__(self, *, chunk, acc, lanes, raw, writes):
        self.lanes = lanes
        self.raw = raw
        self.writes = list(writes)
        super().__init__({
            **{name: In(shape) for name, shape in writes.items()},
            "chunks": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(data.ArrayLayout(acc, lanes)),
            "results": Out(data.ArrayLayout(acc, lanes)),
        })

    def stages(self, m, asked):
        """All of them; ``asked`` is the chunk, held from the cycle after it was asked for."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        asked = Signal.like(self.chunks.chunk, reset_less=True)
        with m.If(self.chunks.valid & self.chunks.chunk.finishes):
            m.d.sync += asked.eq(self.chunks.chunk)
        self.stages(m, asked)
        return m
