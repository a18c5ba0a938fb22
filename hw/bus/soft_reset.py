"""The sequence of a soft reset: it resets the core and its surroundings, but not the bus."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SoftReset"]


class SoftReset(wiring.Component):
    """Stops the DMA engine, then resets the core and flushes its surroundings.

    A reset of the bus starts the sequence too, without the stop.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: starts a soft reset; ignored while ``reset_busy``.
    stop : Out, 1 bit
        Request to finish all transfers; stays high until ``idle``.
    idle : In, 1 bit
        No transfer is in progress.
    reset : Out, 1 bit
        Resets the core; stays high until ``reset_ack``.
    reset_ack : In, 1 bit
        The core has been reset; must fall after ``reset``.
    reset_busy : Out, 1 bit
        A soft reset is in progress.
    flush : Out, 1 bit
        Resets the surroundings of the core; high from ``reset`` until the end of the sequence.
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "stop": Out(1), "idle": In(1, init=1),
            "reset": Out(1, init=1), "reset_ack": In(1),
            "reset_busy": Out(1, init=1), "flush": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.start & ~self.reset_busy):
            m.d.sync += [self.reset_busy.eq(1), self.stop.eq(1)]
        with m.If(self.stop & self.idle):
            m.d.sync += [self.stop.eq(0), self.reset.eq(1), self.flush.eq(1)]
        with m.If(self.reset & self.reset_ack):
            m.d.sync += self.reset.eq(0)
        with m.If(self.flush & ~self.reset & ~self.reset_ack):
            m.d.sync += [self.flush.eq(0), self.reset_busy.eq(0)]
        return m
