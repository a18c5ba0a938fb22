"""A rescaler that keeps one bit for each slot, not one for each cycle."""

from amaranth.hdl import Cat, Mux, Signal

from weft.hw.network_core.output.issue_slots import Issue
from weft.hw.network_core.output.rescaler import Rescaler
from weft.network_core import latencies
from weft.network_core.latencies import add_slot

__all__ = ["SlotRescaler"]


class SlotRescaler(Rescaler):
    """A `Rescaler` whose slots begin every ``scale_cycles`` cycles.

    A chunk is requested in the first cycle of a slot: of every slot, of every second one with ADD,
    or of every fourth one with sums. So a bit for each slot tells the issues of all cycles before.
    """

    def _issues(self, m):
        cycles, job = self.core.scale_cycles, self.job.fields
        phase, slot = Signal(range(cycles)), Signal(2)
        slots = -(-latencies.total_latency(self.core) // cycles) + add_slot(self.core)
        requests = Signal(slots)  # in the slots before
        m.d.sync += phase.eq(phase + 1)
        with m.If(phase == cycles - 1):
            m.d.sync += slot.eq(slot + 1)
        with m.If(phase == 0):
            m.d.sync += requests.eq(Cat(self.request.valid, requests))
        with m.If(self.job.start):
            m.d.sync += [phase.eq(0), slot.eq(0), requests.eq(0)]
        m.d.comb += self.ready.eq(
            (phase == 0) & ~Mux(job.sums, slot.any(), job.add & slot[0])
        )
        return _Issues(m, self, Cat(self.request.valid, requests), phase)


class _Issues:
    """``issues[cycles]``: the issue of that many cycles before."""

    def __init__(self, m, rescaler, requests, phase):
        self._m, self._requests, self._phase = m, requests, phase
        self._job, self._core = rescaler.job.fields, rescaler.core
        self._found = {}

    def __getitem__(self, cycle):
        if cycle not in self._found:
            slots, phase = divmod(cycle, self._core.scale_cycles)
            issue = self._found[cycle] = Signal(Issue, name=f"issue_{cycle}")
            # A slot is in its place of the requests from its second cycle on.
            place, now = slots + (phase > 0), self._phase == phase
            scaled = cycle <= latencies.join(self._core) or ~self._job.sums
            self._m.d.comb += [
                issue.layer.eq(now & self._requests[place] & scaled),
                issue.total.eq(
                    now & self._requests[place + add_slot(self._core)] & self._job.add
                ),
            ]
        return self._found[cycle]
