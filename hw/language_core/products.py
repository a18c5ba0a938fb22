"""`ProductColumns`: sums of products of a vector with the columns of a word."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.language_core.config import COLUMNS, DEPTH, LANES, WORD_BYTES
from weft.language_core.latencies import TREE

__all__ = ["ProductColumns"]


class ProductColumns(wiring.Component):
    """``sum[c] <= (0 if first else sum[c]) + dot(vector, word[c])`` in each of eight columns.

    After the last step of a tile its sums leave in two groups: columns 0 to 3 LATENCY cycles
    after the step, columns 4 to 7 a cycle later. So the last steps of two tiles are at least two
    cycles apart. A product has a DSP block where the family has them. The sums have 32 bits: the
    compiler of a model proves that they fit.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    valid : In, 1 bit
        There is a step.
    first, last : In, 1 bit
        Of a tile, with ``valid``.
    word : In, 16 int8 for each of 8 columns
    vector : In, 16 int16
    group_valid : Out, 1 bit
    group : Out, 4 int32, with ``group_valid``
    """

    def __init__(self, *, target):
        self.multiplier = FABRICS[target].multiplier
        super().__init__({
            "valid": In(1), "first": In(1), "last": In(1),
            "word": In(8 * WORD_BYTES),
            "vector": In(data.ArrayLayout(signed(16), DEPTH)),
            "group_valid": Out(1), "group": Out(data.ArrayLayout(signed(32), LANES)),
        })

    def elaborate(self, platform):
        m = Module()
        before = self.multiplier.LATENCY + TREE
        valid = pipeline(m, self.valid, before, "valid")
        first = pipeline(m, self.first, before, "first")
        last = pipeline(m, self.valid & self.last, before + 1, "last")
        sums = []
        for column in range(COLUMNS):
            bits = self.word[8 * DEPTH * column : 8 * DEPTH * (column + 1)]
            weights = [bits[8 * k : 8 * (k + 1)].as_signed() for k in range(DEPTH)]
            term = self._dot(m, weights, column)
            total = Signal(signed(32), name=f"sum_{column}", reset_less=True)
            with m.If(valid):
                m.d.sync += total.eq(Mux(first, 0, total) + term)
            sums.append(total)
        upper_valid = Signal()
        m.d.sync += upper_valid.eq(last)
        m.d.comb += self.group_valid.eq(last | upper_valid)
        for lane in range(LANES):
            upper = pipeline(m, sums[LANES + lane], 1, f"upper_{lane}")
            m.d.comb += self.group[lane].eq(Mux(upper_valid, upper, sums[lane]))
        return m

    def _dot(self, m, weights, column):
        """The dot product of a column, after the multipliers and a tree of four numbers a stage."""
        terms = []
        for k, weight in enumerate(weights):
            m.submodules[f"product_{column}_{k}"] = product = self.multiplier(
                a=signed(16), b=signed(8)
            )
            m.d.comb += [product.a.eq(self.vector[k]), product.b.eq(weight)]
            terms.append(product.product)
        for stage in range(TREE):
            fours = [terms[n : n + 4] for n in range(0, len(terms), 4)]
            terms = [
                pipeline(m, (a + b) + (c + d), 1, f"tree_{column}_{stage}_{n}")
                for n, (a, b, c, d) in enumerate(fours)
            ]
        return terms[0]
