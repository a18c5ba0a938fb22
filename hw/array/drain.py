"""The drain: turns the end of a pass into the cycles in which the array's results move out."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Drain"]


class Drain(wiring.Component):
    """Results reach the foot for ``rows * slots`` cycles, from ``delay`` cycles after ``start`` on.

    Row p from the top moves only for the first ``(p + 1) * slots - 1`` of them, until the last of
    its own results is at its foot: so the next pass may be captured in its wake, a row at a time,
    ``rows * slots`` cycles after the one before. Folded, the sums themselves move: row p for a
    cycle more, after which they are 0. Starts come at least so far apart.

    Parameters
    ----------
    rows, slots, delay : int
        ``delay`` of 3 or more.
    folded : bool

    Attributes
    ----------
    start : In
    flush : In, where folded
        As start, but the sums are nobody's results.
    valid : Out
        Results are at the foot.
    shift : Out, a bit a row, from the top
    """

    def __init__(self, *, rows, slots, delay, folded=False):
        self.rows = rows
        self.slots = slots
        self.delay = delay
        self.folded = folded
        flush = {"flush": In(1)} if folded else {}
        super().__init__({"start": In(1), **flush, "valid": Out(1), "shift": Out(rows)})

    def elaborate(self, platform):
        m = Module()
        cycles = self.rows * self.slots
        line = Signal(self.delay - 2)
        left = Signal(range(cycles + 1))
        shown = Signal(init=1)  # they are results
        m.d.sync += [line.eq(Cat(self.start, line)), self.valid.eq(left.any() & shown)]
        m.d.sync += [
            self.shift[p].eq(left + (p + 1) * self.slots - (not self.folded) > cycles)
            for p in range(self.rows)
        ]
        if self.folded:
            flushes = Signal(self.delay - 2)
            m.d.sync += [
                line.eq(Cat(self.start | self.flush, line)), flushes.eq(Cat(self.flush, flushes)),
            ]
            with m.If(line[-1]):
                m.d.sync += shown.eq(~flushes[-1])
        with m.If(line[-1]):
            m.d.sync += left.eq(cycles)
        with m.Elif(left.any()):
            m.d.sync += left.eq(left - 1)
        return m
