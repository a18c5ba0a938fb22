"""`Reductions`: maxima and totals of heads, a sum of squares, and the index of the next token."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.language_core.config import HEADS, LANES
from weft.language_core.descriptors import TOTAL_BITS, Reduction
from weft.language_core.latencies import REDUCED

__all__ = ["Reductions"]

_LOWEST = -(1 << 15)  # of int16
_HEAD_BITS = 25  # of a head's total: at most 1,024 positions


class Reductions(wiring.Component):
    """What a pass computes of its results, LATENCY cycles after the last group at most.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    start : In, 1 bit
        Pulse before the first group of a pass.
    kind : In, `Reduction`
        Stable during the pass.
    valid : In, 1 bit
        There is a group.
    results : In, 4 int16
    masked : In, 4 bits
        Results that a maximum leaves out: positions that attention must not see. A total needs no
        mask, because the exponentials of these positions are 0.
    least : In, 15 bits
        Results below it count as 0 in a total and for `Reduction.PICK`. Stable during the pass.
    mark : In, 29 bits
        Of `Reduction.PICK`, with ``start``; less than the sum of the results.
    index : In, 16 bits
        Number of the first result of the group; a multiple of 4.
    first, last : In, 1 bit
        Of the groups of a head.
    head : In, 4 bits
    maximum_head, maximum : In 4 bits, Out int16
        The maximum of a head, in the same cycle.
    total_head, total : In 4 bits, Out 25 bits
        The total of a head, in the same cycle.
    latest_total : Out, 29 bits
        The total of the last head, from the end of a pass with `Reduction.TOTAL` to the start of
        the next one.
    squares : Out, 48 bits
        From the end of a pass with `Reduction.SQUARES` to the start of the next one.
    best : Out, 16 bits
        The index, from the end of a pass with `Reduction.BEST` or `Reduction.PICK` to the start of
        the next one. Of the pick it is the first i with ``sum(results[: i + 1]) > mark``.
    """

    LATENCY = REDUCED

    def __init__(self, *, target):
        self.multiplier = FABRICS[target].multiplier
        super().__init__({
            "start": In(1), "kind": In(3), "valid": In(1),
            "results": In(data.ArrayLayout(signed(16), LANES)),
            "masked": In(LANES), "index": In(16), "least": In(15), "mark": In(TOTAL_BITS),
            "first": In(1), "last": In(1), "head": In(range(HEADS)),
            "maximum_head": In(range(HEADS)), "maximum": Out(signed(16)),
            "total_head": In(range(HEADS)), "total": Out(_HEAD_BITS),
            "latest_total": Out(TOTAL_BITS), "squares": Out(48), "best": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        # ``kind`` selects before the registers, not behind them: the last groups of a pass are
        # still in them when ``kind`` is the one of the next pass.
        flags = {
            name: pipeline(m, getattr(self, name), 2, name)
            for name in ("first", "last", "head", "index")
        }
        later = {name: pipeline(m, flag, 1, f"later_{name}") for name, flag in flags.items()}
        values = [Mux(self.masked[n], _LOWEST, self.results[n]).as_signed() for n in range(LANES)]
        largest = self._tree(m, values, _larger, "largest")
        running = Signal(signed(16), name="running_maximum", reset_less=True)
        maximum = (self.kind == Reduction.MAXIMUM) | (self.kind == Reduction.BEST)
        valid = pipeline(m, self.valid & maximum, 2, "valid_maximum")
        self._of_heads(
            m, flags, valid, largest, _larger, running, self.maximum_head, self.maximum
        )
        # A total and a pick are of exponentials, 0 to 32,767: they have no sign.
        kept = [
            pipeline(m, Mux(result < self.least, 0, result), 1, f"kept_{n}")
            for n, result in enumerate(self.results[n][:15] for n in range(LANES))
        ]
        total = self._tree(m, kept, _sum, "total")
        valid = pipeline(m, self.valid & (self.kind == Reduction.TOTAL), 3, "valid_total")
        self._of_heads(
            m, later, valid, total, _sum, self.latest_total, self.total_head, self.total
        )
        self._squares(m)
        self._best(m, flags)
        self._pick(m, later, kept, total)
        return m

    @staticmethod
    def _tree(m, values, join, name):
        """Four values become one, in two stages."""
        pairs = [
            pipeline(m, join(*values[n : n + 2]), 1, f"{name}_pair_{n}") for n in (0, 2)
        ]
        return pipeline(m, join(*pairs), 1, name)

    @staticmethod
    def _of_heads(m, flags, valid, value, join, running, head, out):
        """Join the groups of each head; its last one writes the result to a memory."""
        joined = Signal.like(running, name=f"joined_{out.name}")
        memory = Memory(shape=out.shape(), depth=HEADS, init=[])
        m.submodules[f"{out.name}_of_head"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            joined.eq(Mux(flags["first"], value, join(running, value))),
            write.en.eq(valid & flags["last"]),
            write.addr.eq(flags["head"]), write.data.eq(joined),
            read.addr.eq(head), out.eq(read.data),
        ]
        with m.If(valid):
            m.d.sync += running.eq(joined)

    def _squares(self, m):
        """Add the squares of all results."""
        squares = []
        for n in range(LANES):
            m.submodules[f"square_{n}"] = square = self.multiplier(a=signed(16), b=signed(16))
            m.d.comb += [square.a.eq(self.results[n]), square.b.eq(self.results[n])]
            squares.append(square.product.as_unsigned())
        total = self._tree(m, squares, _sum, "squares")
        mine = self.kind == Reduction.SQUARES
        valid = pipeline(m, self.valid & mine, self.multiplier.LATENCY + 2, "valid_squares")
        with m.If(self.start & mine):
            m.d.sync += self.squares.eq(0)
        with m.Elif(valid):
            m.d.sync += self.squares.eq(self.squares + total)

    def _best(self, m, flags):
        """Keep the largest value and its index; of equal ones the first."""
        pairs = []
        results = [pipeline(m, self.results[n], 1, f"best_of_{n}") for n in range(LANES)]
        index = pipeline(m, flags["index"], 2, "best_index")
        for n in (0, 2):
            a, b = results[n], results[n + 1]
            is_second = a < b
            pairs.append((
                pipeline(m, Mux(is_second, b, a).as_signed(), 1, f"best_pair_{n}"),
                pipeline(m, is_second, 1, f"best_later_{n}"),
            ))
        (a, a_second), (b, b_second) = pairs
        second = a < b
        value = pipeline(m, Mux(second, b, a).as_signed(), 1, "best_of_group")
        lane = pipeline(m, (second << 1) | Mux(second, b_second, a_second), 2, "best_lane")
        best = Signal(signed(16), reset_less=True)
        empty = Signal()
        mine = self.kind == Reduction.BEST
        valid = pipeline(m, self.valid & mine, 3, "valid_best")
        better = Signal()  # the index follows a cycle later: a comparison does not drive its bits
        m.d.sync += better.eq(0)
        with m.If(self.start & mine):
            m.d.sync += empty.eq(1)
        with m.Elif(valid & (empty | (best < value))):
            m.d.sync += [empty.eq(0), best.eq(value), better.eq(1)]
        with m.If(better):
            m.d.sync += self.best.eq(index | lane)

    def _pick(self, m, flags, kept, total):
        """Find the group in which the running sum exceeds the mark, and the result in it."""
        first, third = (pipeline(m, kept[n], 1, f"kept_{n}_later") for n in (0, 2))
        pair = pipeline(m, kept[0] + kept[1], 1, "pair")
        sums = [
            pipeline(m, value, 1, f"sum_of_{n + 1}")
            for n, value in enumerate((first, pair, pair + third))
        ]
        left, found = Signal(TOTAL_BITS, name="left_of_mark", reset_less=True), Signal()
        mine = self.kind == Reduction.PICK
        valid = pipeline(m, self.valid & mine, 3, "valid_pick")
        # Whether the mark lies in the first result, in the first two, in the first three.
        one, two, three = (left < value for value in sums)
        with m.If(self.start & mine):
            m.d.sync += [left.eq(self.mark), found.eq(0)]
        with m.Elif(valid & ~found):
            with m.If(left < total):
                m.d.sync += found.eq(1)
            with m.Else():
                m.d.sync += left.eq(left - total)
        # As in `_best`, the index follows a cycle later. The comparisons are monotonic: ``one``
        # implies ``two``, and that ``three``. So the lane is the number of those that are 0.
        was_found, picked = Signal(), Signal(16, reset_less=True)
        lane = Cat(~one & (two | ~three), ~two)
        m.d.sync += [was_found.eq(found), picked.eq(flags["index"] | lane)]
        with m.If(found & ~was_found & mine):
            m.d.sync += self.best.eq(picked)


def _sum(a, b):
    return a + b


def _larger(a, b):
    return Mux(a < b, b, a)
