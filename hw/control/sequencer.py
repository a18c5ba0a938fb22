"""The sequencer: a pass becomes the cycles in which its operands enter the array."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.config import PAGE_WORDS
from weft.hw.control.passes import Pass

__all__ = ["Sequencer", "Step"]


class Step(data.StructLayout):
    """One cycle of the array, as it leaves the sequencer: where to read, and what to do with it."""

    def __init__(self, geometries):
        a, b = geometries
        super().__init__({
            "en": 1,
            "clear": 1,
            "a": ceil_log2(a.words),
            "b": ceil_log2(b.words),
            "capture": 1,  # the step ends a sum, which is a result
            "drain": 1,  # the step ends the last sum of its pass
        })


class Sequencer(wiring.Component):
    """``for k in words of K: for slot in slots``, one step a cycle.

    The last round of a pass waits until its results have room, and until the results of the pass
    before are out of its way (``slots * rows`` cycles): so nothing behind the array ever has to
    stop it. Each tile is announced to ``results`` in the cycle of its last step, a void one by
    itself.

    The slot of a step is the cycle modulo ``slots``; a round that has to wait waits a whole turn.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    tile : shape
    slots, rows, depth : int
    room : int
        Passes whose results the result buffer holds.

    Attributes
    ----------
    passes : In, stream of `weft.hw.control.passes.Pass`
    step : Out, `Step`
    results : Out
        ``valid`` and a tile, its ``slot``, whether it is the pass's ``end``, and the last pages
        that it read.
    release : In
        Pulse: a pass's results have left the result buffer.
    active : Out
        A step is under way.
    stalled : Out
        A last round waits for room.
    """

    def __init__(self, *, geometries, tile, slots, rows, depth, room):
        self.slots = slots
        self.rows = rows
        self.depth = depth
        self.room = room
        self.Results = data.StructLayout({
            "valid": 1, "tile": tile, "slot": range(slots), "end": 1,
            "a_page": tile["a_page"].shape, "b_page": tile["b_page"].shape,
        })
        super().__init__({
            "passes": In(stream.Signature(Pass(tile, slots))),
            "step": Out(Step(geometries)),
            "results": Out(self.Results),
            "release": In(1),
            "active": Out(1),
            "stalled": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        here = self.passes.payload
        lead = here.tiles[0]
        slot = Signal(range(self.slots))
        if self.slots > 1:
            m.d.sync += slot.eq(Mux(slot == self.slots - 1, 0, slot + 1))
        first_slot = slot == 0
        last_slot = slot == self.slots - 1
        tile = Array(here.tiles[n] for n in range(self.slots))[slot]
        present = here.active.bit_select(slot, 1)
        run = self.passes.valid & (lead.status == 0)
        void = self.passes.valid & (lead.status != 0) & first_slot

        # Where the pass stands.
        begun = Signal()
        word = Signal(max(len(self.step.a), len(self.step.b)))
        k_left = Signal(lead.k.shape())
        k_now = Mux(begun, k_left, lead.k)
        word_now = Mux(begun, word, 0)
        last_round = k_now <= self.depth

        # Room for results, and the cycles since the last round that gave any.
        take = Signal()
        room = Signal(range(self.room + 1), init=self.room)
        pace = Signal(range(self.slots * self.rows))
        m.d.sync += room.eq(room - take + self.release)
        with m.If(take):
            m.d.sync += pace.eq(self.slots * self.rows - 1)
        with m.Elif(pace.any()):
            m.d.sync += pace.eq(pace - 1)

        # A round is decided on in its first slot and held through the others.
        gives = last_round & ~lead.keep
        may = run & (~gives | (room.any() & ~pace.any()))
        held = Signal()
        going = Mux(first_slot, may, held)
        short = run & gives & ~room.any()
        waiting = Signal()
        with m.If(first_slot):
            m.d.sync += [held.eq(may), waiting.eq(short)]
        with m.If(going & last_slot):
            m.d.sync += [begun.eq(1), k_left.eq(k_now - self.depth), word.eq(word_now + 1)]
        with m.If(self.passes.ready):
            m.d.sync += begun.eq(0)

        ends = going & last_round
        m.d.comb += [
            take.eq(going & gives & first_slot),
            self.passes.ready.eq((ends & last_slot) | void),
            self.step.en.eq(going & present),
            self.step.clear.eq(~begun & ~lead.accumulate),
            self.step.a.eq(tile.a_page * PAGE_WORDS + word_now),
            self.step.b.eq(tile.b_page * PAGE_WORDS + word_now),
            self.step.capture.eq(going & gives),
            self.step.drain.eq(going & gives & last_slot),
            self.active.eq(self.step.en),
            self.stalled.eq(Mux(first_slot, short, waiting)),
            self.results.valid.eq(void | (ends & present)),
            self.results.tile.eq(tile),
            self.results.slot.eq(slot),
            self.results.a_page.eq(self.step.a >> ceil_log2(PAGE_WORDS)),
            self.results.b_page.eq(self.step.b >> ceil_log2(PAGE_WORDS)),
            self.results.end.eq(~Cat(here.active[1:], 0).bit_select(slot, 1)),
        ]
        return m
