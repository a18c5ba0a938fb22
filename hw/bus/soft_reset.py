"""The restart: a soft reset of the core and of all that goes in and out, but not of the bus."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SoftReset"]


class SoftReset(wiring.Component):
    """Stops what is under way, resets the core, and waits until the core has seen it.

    A reset of the whole begins with a restart too.

    Attributes
    ----------
    start : In
        Pulse; without effect during a restart.
    stop : Out, idle : In
        What is under way is to end; it has.
    reset : Out
        Resets the core; falls when ``was_reset`` is high, and is over when that is low again.
    was_reset : In
    reset_busy : Out
        A restart is under way; but for its first part ``reset`` holds what surrounds the core.
    holds : Out
        What surrounds the core is to be reset.
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "stop": Out(1), "idle": In(1, init=1),
            "reset": Out(1, init=1), "was_reset": In(1),
            "reset_busy": Out(1, init=1), "holds": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.start & ~self.reset_busy):
            m.d.sync += [self.reset_busy.eq(1), self.stop.eq(1)]
        with m.If(self.stop & self.idle):
            m.d.sync += [self.stop.eq(0), self.reset.eq(1), self.holds.eq(1)]
        with m.If(self.reset & self.was_reset):
            m.d.sync += self.reset.eq(0)
        with m.If(self.holds & ~self.reset & ~self.was_reset):
            m.d.sync += [self.holds.eq(0), self.reset_busy.eq(0)]
        return m
