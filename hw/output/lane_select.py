"""Lane selection: the sums of one chunk, out of a row of the result buffer."""

from amaranth.hdl import Array, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.results import ResultBuffer
from weft.hw.delay import pipeline
from weft.hw.output.onehot_mux import onehot_mux

__all__ = ["LaneSelect"]


class LaneSelect(wiring.Component):
    """``sums[lane] = row[index * lanes + lane]``, :meth:`latency` cycles after ``index``.

    Parameters
    ----------
    acc : shape
    cols, lanes : int
    registered : bool
        Whether the result buffer has an output register. The selection then is pipelined too.

    Attributes
    ----------
    index : In, position of a chunk in its row
        In the cycle in which the row is read.
    row : In, ``cols`` sums
        `weft.hw.buffers.results.ResultBuffer.latency` cycles after ``index``.
    sums : Out, ``lanes`` sums
        `latency` cycles after ``index``.
    """

    @staticmethod
    def latency(registered):
        """Cycles from ``index`` to ``sums``."""
        return ResultBuffer.latency(registered) + 2 * registered

    def __init__(self, *, acc, cols, lanes, registered):
        self.cols = cols
        self.lanes = lanes
        self.registered = registered
        super().__init__({
            "index": In(range(-(-cols // lanes))),
            "row": In(data.ArrayLayout(acc, cols)),
            "sums": Out(data.ArrayLayout(acc, lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        latency = ResultBuffer.latency(self.registered)
        index = pipeline(m, self.index, latency - self.registered, "index")
        for lane in range(min(self.lanes, self.cols)):
            words = [self.row[c] for c in range(lane, self.cols, self.lanes)]
            if self.registered:
                m.d.comb += self.sums[lane].eq(onehot_mux(m, words, index, f"sums_{lane}"))
            else:
                m.d.comb += self.sums[lane].eq(Array(words)[index])
        return m
