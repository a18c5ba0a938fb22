"""The sequencer: a pass becomes the cycles in which its operands enter the array."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.config import PAGE_WORDS
from weft.hw.control.passes import Pass

__all__ = ["Sequencer", "Step"]


class Step(data.StructLayout):
    """One cycle of the array, as it leaves the sequencer: where to read, and what to do with it.

    ``preload`` is for rows of the tile, whose sums start from word ``c``; there only where ``rows``
    are given.
    """

    def __init__(self, geometries, tile, rows):
        a, b = geometries
        starts = {"c": tile["c"].shape, "preload": rows} if "c" in tile.members else {}
        super().__init__({
            "en": 1,
            "clear": 1,
            "a": ceil_log2(a.words),
            "b": ceil_log2(b.words),
            **starts,
            "capture": 1,  # the step ends a sum, which is a result
            "drain": 1,  # the step ends the last sum of its pass
        })


class Sequencer(wiring.Component):
    """``for k in words of K: for slot in slots``, one step a cycle.

    Where the sums start from C, each row of it has a round of its own, ``for row in rows: for slot
    in slots``, before the first k; a C of one row goes to all rows with the first k.

    The last round of a pass waits until its results have room, and until the results of the pass
    before are out of its way (``slots * rows`` cycles): so nothing behind the array ever has to
    stop it. Each tile is announced to ``results`` in the cycle of its last step, a void one by
    itself.

    The slot of a step is the cycle modulo ``slots``, counted from the first step after a rest. The
    array is at rest while there is no pass to run and no sums are kept for the next. A round that
    has to wait waits a whole turn.

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
    slot : Out
        The tile of the pass that is asked for.
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
        self.starts = "c" in tile.members
        self.Results = data.StructLayout({
            "valid": 1, "tile": tile, "slot": range(slots), "end": 1,
            "a_page": tile["a_page"].shape, "b_page": tile["b_page"].shape,
        })
        super().__init__({
            "passes": In(stream.Signature(Pass(tile))),
            "slot": Out(range(slots)),
            "step": Out(Step(geometries, tile, rows)),
            "results": Out(self.Results),
            "release": In(1),
            "active": Out(1),
            "stalled": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        lead, tile = self.passes.payload.lead, self.passes.payload.tile
        present = self.passes.payload.present
        run = self.passes.valid & (lead.status == 0)
        slot = self.slot
        first_slot = slot == 0
        last_slot = slot == self.slots - 1
        if self.slots > 1:
            kept = Signal()
            with m.If(self.passes.ready & run):
                m.d.sync += kept.eq(lead.keep)
            with m.If(~first_slot | run | kept):
                m.d.sync += slot.eq(Mux(last_slot, 0, slot + 1))
        void = self.passes.valid & (lead.status != 0) & first_slot

        # Where the pass stands.
        begun = Signal()
        word = Signal(max(len(self.step.a), len(self.step.b)))
        k_left = Signal(lead.k.shape())
        k_now = Mux(begun, k_left, lead.k)
        word_now = Mux(begun, word, 0)
        loading = Signal()  # C, before the first k
        last_round = ~loading & (k_now <= self.depth)

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
        going = Signal()
        short = run & gives & ~room.any()
        waiting = Signal()
        m.d.comb += going.eq(Mux(first_slot, may, held))
        with m.If(first_slot):
            m.d.sync += [held.eq(may), waiting.eq(short)]
        with m.If(going & last_slot & ~loading):
            m.d.sync += [begun.eq(1), k_left.eq(k_now - self.depth), word.eq(word_now + 1)]
        with m.If(self.passes.ready):
            m.d.sync += begun.eq(0)
        fresh = ~begun & ~lead.accumulate
        if self.starts:
            fresh &= ~lead.preload
            row = Signal(range(self.rows))
            loaded = Signal()
            every = (lead.preload & lead.broadcast & ~begun).replicate(self.rows)
            m.d.comb += [
                loading.eq(lead.preload & ~lead.broadcast & ~loaded),
                self.step.preload.eq(Mux(loading, 1 << row, every) & going.replicate(self.rows)),
                self.step.c.eq(tile.c + row),
            ]
            with m.If(going & last_slot & loading):
                m.d.sync += [row.eq(row + 1), loaded.eq(row == self.rows - 1)]
            with m.If(self.passes.ready):
                m.d.sync += [row.eq(0), loaded.eq(0)]

        ends = going & last_round
        m.d.comb += [
            take.eq(going & gives & first_slot),
            self.passes.ready.eq((ends & last_slot) | void),
            self.step.en.eq(going & present & ~loading),
            self.step.clear.eq(going & fresh),
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
            self.results.end.eq(self.passes.payload.end),
        ]
        return m
