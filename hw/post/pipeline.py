"""What chunks of sums go through to become results: stages that move together, or not at all."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pipeline"]


class Pipeline(wiring.Component):
    """LATENCY stages that all move together, or wait when the last one is not taken.

    What has nothing to be done to it goes by the pipeline once that is empty: combinationally, so
    that it costs nothing, and the order of chunks is kept.

    Parameters
    ----------
    chunk : shape
        `weft.hw.post.collector.Chunk`.
    writes : dict of shapes
        Of what is loaded and used here, by its name.

    Attributes
    ----------
    <name> : In
        What is loaded, for each of ``writes``.
    i, o : In, Out, stream of chunks
    """

    LATENCY: int

    def __init__(self, *, chunk, writes):
        self.lanes = chunk["sums"].shape.length
        self.writes = list(writes)
        super().__init__({
            **{name: In(shape) for name, shape in writes.items()},
            "i": In(stream.Signature(chunk)),
            "o": Out(stream.Signature(chunk)),
        })

    def wants(self, chunk):
        """Whether there is something to be done to a chunk."""
        raise NotImplementedError

    def results(self, m, move, chunks):
        """What a chunk becomes in its last stage: a value for each lane.

        ``chunks`` are a chunk as it comes and as it is in each stage; stages change with ``move``.
        """
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        move = Signal()
        valid = Signal(self.LATENCY)
        last = valid[-1]
        enters = self.wants(self.i.payload)
        through = self.i.valid & ~enters & ~valid.any()
        m.d.comb += [
            move.eq(~last | self.o.ready),
            self.o.valid.eq(last | through),
            self.i.ready.eq(Mux(enters, move, self.o.ready & ~valid.any())),
        ]
        # What travels along: everything of the chunk but its sums.
        chunks = [self.i.payload]
        with m.If(move):
            m.d.sync += valid.eq(valid << 1 | (self.i.valid & enters))
            for stage in range(self.LATENCY):
                chunks.append(Signal(chunks[0].shape(), name=f"chunk_{stage}"))
                m.d.sync += chunks[-1].eq(chunks[-2])
        results = self.results(m, move, chunks)
        with m.If(through):
            m.d.comb += self.o.payload.eq(self.i.payload)
        with m.Else():
            m.d.comb += self.o.payload.eq(chunks[-1])
            m.d.comb += [
                self.o.payload.sums[lane].eq(value) for lane, value in enumerate(results)
            ]
        return m
