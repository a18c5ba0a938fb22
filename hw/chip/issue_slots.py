"""The issue slots of the scalers: a chunk takes one slot, or four with ADD or sums."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.chip.latencies import add_slots

__all__ = ["Issue", "IssueSlots"]


class Issue(data.Struct):
    """The values that the scalers take in a slot; at most one bit is 1.

    ========== ====================================================================================
    ``layer``  the sums of a chunk
    ``added``  the same chunk of the added map
    ``result`` the results of the layer for that chunk
    ``total``  the sum of both
    ========== ====================================================================================
    """

    layer: 1
    added: 1
    result: 1
    total: 1


class IssueSlots(wiring.Component):
    """Assigns slots of ``scale_cycles`` cycles to the values of chunks.

    Chunks are at least a slot apart, or four slots in a job with sums. With ADD they are a multiple
    of four slots apart while there are chunks in flight. The other three values of a chunk follow
    its sums by the numbers of slots in `weft.chip.latencies.add_slots`.

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
        self.slots = add_slots(core)
        super().__init__({
            "start": In(1), "add": In(1), "sums": In(1), "request": In(1), "ready": Out(1),
            "issue": Out(Issue),
        })

    def elaborate(self, platform):
        m = Module()
        period = 4 * self.cycles  # with ADD or sums
        cycle = Signal(range(period))
        requested = Signal()  # a chunk was requested in this period; 0 when a job starts
        before = Signal(self.slots.total // 4)  # the same for the periods before
        four = Signal()  # slots that a chunk takes
        m.d.sync += four.eq(self.add | self.sums)
        end = cycle == Mux(four, period - 1, self.cycles - 1)
        m.d.comb += [self.ready.eq(cycle == 0), self.issue.layer.eq(self.request)]
        with m.If(self.request | (cycle != 0) | requested | before.any()):
            m.d.sync += cycle.eq(Mux(end, 0, cycle + 1))
            with m.If(self.add):
                m.d.sync += requested.eq((requested | self.request) & ~end)
        with m.If(end):
            m.d.sync += before.eq(Cat(requested, before))
        chunks = Cat(requested, before)
        for name in ("added", "result", "total"):
            periods, slot = divmod(getattr(self.slots, name), 4)
            m.d.comb += self.issue[name].eq(chunks[periods] & (cycle == slot * self.cycles))
        with m.If(self.start):
            m.d.sync += [cycle.eq(0), before.eq(0)]
        return m
