"""The lanes: the sums of a chunk, out of the row that the result buffer gives."""

from amaranth.hdl import Array, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.results import ResultBuffer
from weft.hw.delay import pipeline
from weft.hw.output.select import chosen

__all__ = ["LaneSelect"]


class LaneSelect(wiring.Component):
    """``sums[lane] = row[chunk * lanes + lane]``.

    Parameters
    ----------
    acc : shape
    cols, lanes : int
    registered : bool
        Whether the sums are held in registers.

    Attributes
    ----------
    chunk : In
        Asked for.
    row : In, ``cols`` sums
        `weft.hw.buffers.results.ResultBuffer.latency` cycles later.
    sums : Out, ``lanes`` of them
        `latency` cycles after the chunk was asked for.
    """

    @staticmethod
    def latency(registered):
        return ResultBuffer.latency(registered) + 2 * registered

    def __init__(self, *, acc, cols, lanes, registered):
        self.cols = cols
        self.lanes = lanes
        self.registered = registered
        super().__init__({
            "chunk": In(range(-(-cols // lanes))),
            "row": In(data.ArrayLayout(acc, cols)),
            "sums": Out(data.ArrayLayout(acc, lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        latency = ResultBuffer.latency(self.registered)
        which = pipeline(m, self.chunk, latency - self.registered, "which")
        for lane in range(min(self.lanes, self.cols)):
            words = [self.row[c] for c in range(lane, self.cols, self.lanes)]
            if self.registered:
                m.d.comb += self.sums[lane].eq(chosen(m, words, which, f"sums_{lane}"))
            else:
                m.d.comb += self.sums[lane].eq(Array(words)[which])
        return m
