"""The issue slots of the scalers: a chunk takes one slot, two with ADD, or four with sums."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.network_core.latencies import add_slot

__all__ = ["Issue", "IssueSlots"]


class Issue(data.Struct):
    """The values that the scalers take in a slot; at most one bit is 1.

    ========= =====================================================================================
    ``layer`` the sums of a chunk
    ``total`` the scaled results of the layer for that chunk, and its scaled added values
    ========= =====================================================================================
    """

    layer: 1
    total: 1


class IssueSlots(wiring.Component):
    """Assigns slots of ``scale_cycles`` cycles to the values of chunks.

    Chunks are at least a slot apart, or four slots in a job with sums. With ADD they are a multiple
    of two slots apart while there are chunks in flight. The total of a chunk follows its sums by
    `weft.network_core.latencies.add_slot` slots, an odd number.

    Parameters
    ----------
    core : Config

    Attributes
    ----------
    start : In, 1 bit
        Pulse: a job starts. No chunk is in flight.
    add : In, 1 bit
        The job has ADD.
    sums : In, 1 bit
        The job stores sums. Stable from the cycle after ``start``, as is ``add``.
    request : In, 1 bit
        A chunk is requested; only while ``ready`` is 1.
    ready : Out, 1 bit
        A chunk can be requested.
    issue : Out, `Issue`
        In the first cycle of a slot.
    """

    def __init__(self, core):
        self.cycles = core.scale_cycles
        self.total_slot = add_slot(core)
        super().__init__({
            "start": In(1), "add": In(1), "sums": In(1), "request": In(1), "ready": Out(1),
            "issue": Out(Issue),
        })

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(range(4 * self.cycles))
        last = Signal.like(cycle, init=self.cycles - 1)  # cycle of a period
        requested = Signal()  # a chunk was requested in this period; 0 when a job starts
        before = Signal(self.total_slot // 2)  # the same for the periods before
        slots = Mux(self.sums, 4, Mux(self.add, 2, 1))  # of a period, the time of a chunk
        m.d.sync += last.eq(slots * self.cycles - 1)
        end = cycle == last
        m.d.comb += [
            self.ready.eq(cycle == 0),
            self.issue.layer.eq(self.request),
            self.issue.total.eq(before[-1] & (cycle == self.cycles)),
        ]
        with m.If(self.request | (cycle != 0) | requested | before.any()):
            m.d.sync += cycle.eq(Mux(end, 0, cycle + 1))
            with m.If(self.add):
                m.d.sync += requested.eq((requested | self.request) & ~end)
        with m.If(end):
            m.d.sync += before.eq(Cat(requested, before))
        with m.If(self.start):
            m.d.sync += [cycle.eq(0), before.eq(0)]
        return m
