"""The rounder: holds binary32 sums between limits, column by column, and makes bfloat16 of them."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from weft.commands import Region
from weft.hw.memory.operands import OperandBuffer
from weft.hw.post.pipeline import Pipeline

__all__ = ["Limits", "Rounder"]


class Limits(data.Struct):
    """Those of a column, in binary32; `weft.commands.PARAMETER` is the same in bytes."""

    low: 32
    high: 32


class Rounder(Pipeline):
    """``y = bfloat16(clamp(S, low, high))``, either, both or none, as the job wants it.

    A NaN stays, and what a clamp leaves is never -0 but +0. Rounded to nearest even, a bfloat16 is
    in the low half of its lane. Every NaN that comes in is the canonical one.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    chunk, writes
        As of `Pipeline`; there is no clamp without the write of ``parameters``.

    Source: IEEE 754-2019, clauses 4.3.1 and 5.10 (totalOrder).
    """

    def __init__(self, *, geometries, chunk, writes):
        self.clamps = "parameters" in writes
        self.geometries = geometries
        self.LATENCY = (OperandBuffer.LATENCY + 2) * self.clamps + 1
        super().__init__(chunk=chunk, writes=writes)

    def wants(self, chunk):
        return chunk.finish.as_value().any()

    def results(self, m, move, chunks):
        sums = [chunks[0].sums[lane] for lane in range(self.lanes)]
        if self.clamps:
            sums = self._clamped(m, move, chunks)
        results = []
        wanted = chunks[self.LATENCY - 1].finish.round
        for lane, value in enumerate(sums):
            up = value[15] & (value[:15].any() | value[16])
            result = Signal(32, name=f"result_{lane}")
            with m.If(move):
                m.d.sync += result.eq(Mux(wanted, value[16:] + up, value))
            results.append(result)
        return results

    def _clamped(self, m, move, chunks):
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape()
        )
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.en.eq(move),
            buffer.address.eq(self.i.payload.panel * geometry.page + self.i.payload.chunk),
        ]
        limits = data.ArrayLayout(Limits, self.lanes)(buffer.word.as_value())
        read, compared = OperandBuffer.LATENCY, OperandBuffer.LATENCY + 1
        sums = []
        for lane in range(self.lanes):
            value = chunks[read].sums[lane]
            limit = limits[lane]
            wanted = chunks[read].finish.clamp & ~_is_nan(value)
            c_low = Signal(name=f"c_low_{lane}")
            c_high = Signal(name=f"c_high_{lane}")
            c_any = Signal(name=f"c_any_{lane}")
            c_limit = Signal(Limits, name=f"c_limit_{lane}")
            held = Signal(32, name=f"held_{lane}")
            value_now = chunks[compared].sums[lane]
            chosen = Mux(c_low, c_limit.low, Mux(c_high, c_limit.high, value_now))
            with m.If(move):
                m.d.sync += [
                    c_any.eq(wanted),
                    c_low.eq(wanted & (_rank(value) < _rank(limit.low))),
                    c_high.eq(wanted & (_rank(value) > _rank(limit.high))),
                    c_limit.eq(limit),
                    held.eq(Cat(chosen[:31], chosen[31] & ~(c_any & ~chosen[:31].any()))),
                ]
            sums.append(held)
        return sums


def _is_nan(value):
    """Of a NaN that is canonical."""
    return value[22:31].all()


def _rank(value):
    """A number that grows as a binary32 does, with -0 under +0."""
    return Mux(value[31], ~value, value | 1 << 31)
