"""The parts in which the sums of a chunk are stored: ``lanes`` bytes in each slot."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.network_core.layouts import MapChunk
from weft.network_core.latencies import CHUNK_STORE, SUM_PARTS

__all__ = ["SumParts"]


class SumParts(wiring.Component):
    """Divides the ``4 * lanes`` bytes of a chunk of sums, little-endian, into four parts.

    Each part is a chunk of ``lanes`` bytes. Parts without a byte are missing: a chunk with few
    columns has fewer parts. The last part has the ends of rows, tiles, panels and the job.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    next : In, 1 bit
        Pulse: ``sums`` is valid in the next cycle. Pulses are at least four slots of
        ``scale_cycles`` apart.
    sums : In, ``lanes`` x 32 bits
    chunk : In, `weft.hw.network_core.layouts.MapChunk`
        The chunk of the sums, from ``next`` to ``take``.
    part : Out, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The first part in the cycle of ``next``, the other ones in the slots after it.
    take : Out, 1 bit
        Pulse, with the last part.
    bytes : Out, ``lanes`` bytes
        Of the part, `weft.network_core.latencies.CHUNK_STORE` cycles later.
    """

    def __init__(self, config):
        self.cycles = config.array.scale_cycles
        self.lanes = config.array.lanes
        super().__init__({
            "next": In(1),
            "sums": In(data.ArrayLayout(signed(32), self.lanes)),
            "chunk": In(MapChunk(config)),
            "part": Out(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "take": Out(1),
            "bytes": Out(8 * self.lanes),
        })

    def elaborate(self, platform):
        m = Module()
        index, busy = Signal(range(SUM_PARTS)), Signal()
        wait = Signal(range(self.cycles))  # cycles to the next slot
        # The last byte of the chunk: its part, and its place there.
        lane_bits = (self.lanes - 1).bit_length()
        last_byte = Cat(Const(SUM_PARTS - 1, 2), self.chunk.lane_last)[: lane_bits + 2]
        last = index == last_byte[lane_bits:]
        part = self.part
        m.d.comb += [
            part.valid.eq(self.next | (busy & (wait == 0))),
            part.chunk.eq(self.chunk),
            part.chunk.lane_last.eq(Mux(last, last_byte[:lane_bits], self.lanes - 1)),
            self.take.eq(part.valid & last),
        ]
        for name in ("row_end", "tile_end", "panel_end", "last"):
            m.d.comb += part.chunk[name].eq(self.chunk[name] & last)
        with m.If(part.valid):
            m.d.sync += [
                index.eq(Mux(last, 0, index + 1)), busy.eq(~last), wait.eq(self.cycles - 1),
            ]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        self._bytes(m, index)
        return m

    def _bytes(self, m, index):
        """Keep the sums, and select a part: a register for each one, of which three are 0."""
        sums, valid = Signal.like(self.sums, reset_less=True), Signal()
        m.d.sync += valid.eq(self.next)
        with m.If(valid):
            m.d.sync += sums.eq(self.sums)
        onehot = Signal(SUM_PARTS)
        m.d.comb += onehot.eq(1 << index)
        masked = []
        for n, selected in enumerate(pipeline(m, onehot, CHUNK_STORE - 2, "selected")):
            part = sums.as_value().word_select(n, len(self.bytes))
            masked.append(Signal.like(self.bytes, name=f"part_{n}", reset_less=True))
            m.d.sync += masked[-1].eq(Mux(selected, part, 0))
        m.d.comb += self.bytes.eq(pipeline(m, reduce(or_, masked), 1, "bytes"))
