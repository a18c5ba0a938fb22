"""The base class of the epilogues: a pipeline from sums to results that never stalls."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ResultPipeline"]


class ResultPipeline(wiring.Component):
    """Turns the sums of a chunk into results, LATENCY cycles after the request of the chunk.

    Parameters of the columns are read from their buffers while the sums are still being read.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    acc : shape
    lanes : int
    sum_latency : int
        Cycles from a request to its sums.
    writes : dict of shapes
        The buffer writes that the pipeline uses, by name.

    Attributes
    ----------
    <name> : In, the shape from ``writes``
        Buffer write of the loader, for each name of ``writes``.
    request : In, ``valid`` and a ``chunk``
        The chunk that is requested in this cycle.
    sums : In, ``lanes`` values
        ``sum_latency`` cycles after the request.
    results : Out, ``lanes`` values
        LATENCY cycles after a request that uses the epilogue.
    """

    LATENCY: int

    def __init__(self, *, chunk, acc, lanes, sum_latency, writes):
        self.lanes = lanes
        self.sum_latency = sum_latency
        self.writes = list(writes)
        super().__init__({
            **{name: In(shape) for name, shape in writes.items()},
            "request": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(data.ArrayLayout(acc, lanes)),
            "results": Out(data.ArrayLayout(acc, lanes)),
        })

    def stages(self, m, chunk):
        """Add all stages. ``chunk`` is the last requested chunk, registered one cycle after it."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        chunk = Signal.like(self.request.chunk, reset_less=True)
        with m.If(self.request.valid & self.request.chunk.uses_epilogue):
            m.d.sync += chunk.eq(self.request.chunk)
        self.stages(m, chunk)
        return m
