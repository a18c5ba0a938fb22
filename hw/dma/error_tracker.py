"""The blame: which job a beat that was read with an error belongs to."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ErrorTracker"]

DELAY = 3  # cycles from a load's last granule until its last beat is known to be right


class ErrorTracker(wiring.Component):
    """A load that feeds the latest job marks that one, any other load the next job with results.

    What the next job is to be marked with goes to the scatter with its words. The latest job may be
    under way already: until it has ended no other is handed out, so that it stays the latest.

    Attributes
    ----------
    spoilt : In
        Pulse: a beat with an error was used for the load whose header went out last.
    final : In
        Pulse: the last granule of a load has left.
    fed : In
        As of `weft.hw.dma.descriptor_fetcher.DescriptorFetcher`.
    takes : In
        Pulse: the words of a job have gone to the scatter.
    rests : In
        The scatter has no job.
    next : Out
        The next job with results is wrong.
    latest : Out
        The latest one is.
    holds : Out
        No job may be handed out.
    """

    def __init__(self):
        super().__init__({
            "spoilt": In(1), "final": In(1), "fed": In(1), "takes": In(1), "rests": In(1),
            "next": Out(1), "latest": Out(1), "holds": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        settles = Signal(DELAY)
        m.d.comb += self.holds.eq(self.final | settles.any() | self.latest)
        m.d.sync += settles.eq(Cat(self.final, settles))
        with m.If(self.takes):
            m.d.sync += self.next.eq(0)
        with m.If(self.rests):
            m.d.sync += self.latest.eq(0)
        with m.If(self.spoilt):
            with m.If(self.fed):
                m.d.sync += self.latest.eq(1)
            with m.Else():
                m.d.sync += self.next.eq(1)
        return m
