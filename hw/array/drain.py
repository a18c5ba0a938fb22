"""The drain: the shift enables that move the results of a pass out of the array."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Drain"]


class Drain(wiring.Component):
    """``valid`` for ``rows * slots`` cycles, from ``delay`` cycles after ``start``.

    Row p from the top shifts only in the first ``(p + 1) * slots - 1`` of these cycles, until the
    last of its own results is in its lowest register. So the next pass can be captured one row
    after the other, ``rows * slots`` cycles after the pass before. If folded, the sums themselves
    move: row p shifts for one cycle more, and is then 0. Starts and flushes are at least ``rows *
    slots`` cycles apart, if folded one cycle more.

    Parameters
    ----------
    rows, slots : int
    delay : int
        3 or more.
    folded : bool

    Attributes
    ----------
    start : In
        Pulse: a pass ends.
    flush : In; only if folded
        Pulse: as ``start``, but the sums are discarded: ``valid`` stays 0.
    valid : Out, 1 bit
        Results are at the south edge of the array.
    shift : Out, 1 bit a row, from the top
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
        starts = Signal(self.delay - 2)  # delay line
        remaining = Signal(range(cycles + 1))
        is_result = Signal(init=1)  # the sums that move are results
        m.d.sync += [
            starts.eq(Cat(self.start, starts)), self.valid.eq(remaining.any() & is_result),
        ]
        for p in range(self.rows):
            idle = cycles - (p + 1) * self.slots + (not self.folded)  # of the cycles, the last ones
            if idle < cycles:
                m.d.sync += self.shift[p].eq(remaining > idle)
        if self.folded:
            flushes = Signal(self.delay - 2)  # delay line
            m.d.sync += [
                starts.eq(Cat(self.start | self.flush, starts)),
                flushes.eq(Cat(self.flush, flushes)),
            ]
            with m.If(starts[-1]):
                m.d.sync += is_result.eq(~flushes[-1])
        with m.If(starts[-1]):
            m.d.sync += remaining.eq(cycles)
        with m.Elif(remaining.any()):
            m.d.sync += remaining.eq(remaining - 1)
        return m
