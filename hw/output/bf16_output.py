"""The rounder: holds binary32 sums between limits, column by column, and makes bfloat16 of them."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from weft.commands import Region
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.delay import pipeline
from weft.hw.output.result_pipeline import ResultPipeline

__all__ = ["Bf16Output", "Limits"]


class Limits(data.Struct):
    """Those of a column, in binary32; `weft.commands.PARAMETER` is the same in bytes."""

    low: 32
    high: 32


class Bf16Output(ResultPipeline):
    """``y = bfloat16(clamp(S, low, high))``, either, both or none, as the job wants it.

    A NaN stays, and what a clamp leaves is never -0 but +0. Rounded to nearest even, a bfloat16 is
    in the low half of its lane. Every NaN that comes in is the canonical one.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    chunk, acc, lanes, raw, writes
        As of `ResultPipeline`; there is no clamp without the write of ``parameters``.

    Source: IEEE 754-2019, clauses 4.3.1 and 5.10 (totalOrder).
    """

    def __init__(self, *, geometries, raw, writes, **common):
        self.clamps = "parameters" in writes
        self.geometries = geometries
        self.met = max(raw, (1 + OperandBuffer.LATENCY) * self.clamps)
        self.LATENCY = self.met + 2 * self.clamps + 1
        super().__init__(raw=raw, writes=writes, **common)

    def stages(self, m, asked):
        sums = [
            pipeline(m, self.sums[lane], self.met - self.raw, f"sums_{lane}")
            for lane in range(self.lanes)
        ]
        finish = pipeline(m, self.chunks.chunk.finish, self.met, "finish")
        if self.clamps:
            sums = self._clamped(m, sums, asked, finish.clamp)
            finish = pipeline(m, finish, 2, "finish_late")
        for lane, value in enumerate(sums):
            up = value[15] & (value[:15].any() | value[16])
            m.d.sync += self.results[lane].eq(Mux(finish.round, value[16:] + up, value))

    def _clamped(self, m, sums, asked, clamps):
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape()
        )
        address = (asked.panel * geometry.page + asked.chunk)[: len(buffer.read_addr)]
        wait = self.met - 1 - OperandBuffer.LATENCY
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.read_en.eq(1),
            buffer.read_addr.eq(pipeline(m, address, wait, "address")),
        ]
        limits = data.ArrayLayout(Limits, self.lanes)(buffer.read_data.as_value())
        clamped = []
        for lane, value in enumerate(sums):
            limit = limits[lane]
            wanted = clamps & ~_is_nan(value)
            c_value = pipeline(m, value, 1, f"c_value_{lane}")
            c_limit = pipeline(m, limit, 1, f"c_limit_{lane}")
            c_low, c_high, c_any = (Signal(name=f"c_{n}_{lane}") for n in ("low", "high", "any"))
            chosen = Mux(c_low, c_limit.low, Mux(c_high, c_limit.high, c_value))
            held = Signal(32, name=f"held_{lane}")
            m.d.sync += [
                c_any.eq(wanted),
                c_low.eq(wanted & (_rank(value) < _rank(limit.low))),
                c_high.eq(wanted & (_rank(value) > _rank(limit.high))),
                held.eq(Cat(chosen[:31], chosen[31] & ~(c_any & ~chosen[:31].any()))),
            ]
            clamped.append(held)
        return clamped


def _is_nan(value):
    """Of a NaN that is canonical."""
    return value[22:31].all()


def _rank(value):
    """A number that grows as a binary32 does, with -0 under +0."""
    return Mux(value[31], ~value, value | 1 << 31)
