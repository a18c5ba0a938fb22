"""The sequencer: a pass becomes the cycles in which its operands enter the array."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.config import PAGE_WORDS
from weft.hw.control.pass_builder import Pass

__all__ = ["ArrayStep", "Sequencer"]


class ArrayStep(data.StructLayout):
    """One cycle of the array, as it leaves the sequencer: where to read, and what to do with it.

    ``preload`` is for rows of the tile, whose sums start from word ``c``; there only where ``rows``
    are given.
    """

    def __init__(self, geometries, tile, rows, folded):
        a, b = geometries
        starts = {"c_addr": tile["c"].shape, "preload": rows} if "c" in tile.members else {}
        super().__init__({
            "en": 1,
            "clear": 1,
            "a_addr": ceil_log2(a.words),
            "b_addr": ceil_log2(b.words),
            **starts,
            "capture": 1,  # the step ends a sum, which is a result
            "drain": 1,  # the step ends the last sum of its pass
            **({"flush": 1} if folded else {}),  # no step, but what sums there are go
        })


class Sequencer(wiring.Component):
    """``for k in words of K: for slot in slots``, one step a cycle.

    Where the sums start from C, each row of it has a round of its own, ``for row in rows: for slot
    in slots``, before the first k; a C of one row goes to all rows with the first k.

    The last round of a pass waits until its results have room, and until the results of the pass
    before are out of its way (``slots * rows`` cycles): so nothing behind the array ever has to
    stop it. Each tile is announced to ``results`` in the cycle of its last step, a void one by
    itself. Steps and results leave LATENCY cycles after they were decided on.

    Where sums are drained through their own accumulators (``folded``), it is the first round of a
    pass that waits for the results of the pass before; and sums that nobody has drained, since they
    were kept or their job was aborted, are flushed before a pass that starts anew.

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
    folded : bool
        With one slot only, and without a C.

    Attributes
    ----------
    passes : In, stream of `weft.hw.control.pass_builder.Pass`
    slot : Out
        The tile of the pass that is asked for.
    step : Out, `ArrayStep`
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

    LATENCY = 1

    def __init__(self, *, geometries, tile, slots, rows, depth, room, folded=False):
        self.slots = slots
        self.rows = rows
        self.depth = depth
        self.room = room
        self.folded = folded
        self.starts = "c" in tile.members
        self.Results = data.StructLayout({
            "valid": 1, "tile": tile, "slot": range(slots), "end": 1,
            "a_page": tile["a_page"].shape, "b_page": tile["b_page"].shape,
        })
        super().__init__({
            "passes": In(stream.Signature(Pass(tile))),
            "slot": Out(range(slots)),
            "step": Out(ArrayStep(geometries, tile, rows, folded)),
            "results": Out(self.Results),
            "release": In(1),
            "active": Out(1),
            "stalled": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        lead, tile = self.passes.payload.lead, self.passes.payload.tile
        present = self.passes.payload.present
        run = self.passes.valid & ~lead.failed
        slot = self.slot
        first_slot = slot == 0
        last_slot = slot == self.slots - 1
        if self.slots > 1:
            kept = Signal()
            with m.If(self.passes.ready & run):
                m.d.sync += kept.eq(lead.hold)
            with m.If(~first_slot | run | kept):
                m.d.sync += slot.eq(Mux(last_slot, 0, slot + 1))
        void = self.passes.valid & lead.failed & first_slot

        # Where the pass stands; what comes next is known a round ahead. No pass resets it, too.
        begun = Signal(reset_less=True)
        word = Signal(max(len(self.step.a_addr), len(self.step.b_addr)), reset_less=True)
        # k at the begin of the round after the next
        most = (1 << len(lead.k)) + 2 * self.depth
        ahead = Signal(range(most + 1), init=2 * self.depth, reset_less=True)
        last = Signal(reset_less=True)  # the round is the pass's last, and not its first
        loading = Signal()  # C, before the first k
        first = ~begun
        clear = 1  # the array is free for a pass
        last_round = last | (first & lead.single_word & ~loading)

        take, flush, going = Signal(), Signal(), Signal()
        room, pace, open_ = self._pace(m, take, flush)
        if self.folded:
            clear = self._fold(m, run & first, take, flush, going, pace)
            last_round = last | (first & lead.single_word & clear)

        # A round is decided on in its first slot and held through the others.
        gives = last_round & ~lead.hold
        ends = last_round & (lead.hold | open_)
        may = run & (begun | clear) & (ends | ~last_round)
        held = Signal()
        short = run & gives & ~room.any()
        waiting = Signal()
        m.d.comb += going.eq(Mux(first_slot, may, held))
        with m.If(first_slot):
            m.d.sync += [held.eq(may), waiting.eq(short)]
        with m.If(going & last_slot & ~loading):
            m.d.sync += [
                begun.eq(1), word.eq(word + 1),
                last.eq(ahead >= lead.k), ahead.eq(ahead + self.depth),
            ]
        with m.If(self.passes.ready | ~self.passes.valid):
            m.d.sync += [begun.eq(0), word.eq(0), last.eq(0), ahead.eq(2 * self.depth)]
        step, results = Signal.like(self.step), Signal.like(self.results)
        fresh = ~begun & ~lead.accumulate
        if self.starts:
            fresh &= ~lead.preload
            self._start(m, step, lead, begun, going, loading)
        ended = Mux(first_slot, ends, held & last_round)
        m.d.comb += [
            take.eq(run & ends & ~lead.hold & first_slot),
            self.passes.ready.eq((ended & last_slot) | (lead.failed & first_slot)),
            step.en.eq(going & present & ~loading),
            step.clear.eq(going & fresh),
            step.a_addr.eq(tile.a_page * PAGE_WORDS + word),
            step.b_addr.eq(tile.b_page * PAGE_WORDS + word),
            step.capture.eq(going & gives),
            step.drain.eq(going & gives & last_slot),
            self.stalled.eq(Mux(first_slot, short, waiting)),
            results.valid.eq(void | (run & ended & present)),
            results.tile.eq(tile),
            results.slot.eq(slot),
            results.a_page.eq(step.a_addr >> ceil_log2(PAGE_WORDS)),
            results.b_page.eq(step.b_addr >> ceil_log2(PAGE_WORDS)),
            results.end.eq(self.passes.payload.end),
        ]
        if self.folded:
            m.d.comb += step.flush.eq(flush)
        m.d.sync += [self.step.eq(step), self.results.eq(results)]
        m.d.comb += self.active.eq(self.step.en)
        return m

    def _pace(self, m, take, flush):
        """Room for results, the cycles until there may be more, whether both allow for some now.

        The last is known a cycle ahead.
        """
        turn = self.slots * self.rows + self.folded
        room = Signal(range(self.room + 1), init=self.room)
        pace = Signal(range(turn))
        open_ = Signal(init=1)
        m.d.sync += room.eq(room - take + self.release)
        with m.If(take | flush):
            m.d.sync += [pace.eq(turn - 1), open_.eq(((room > 1) | self.release) & (turn == 1))]
        with m.Else():
            m.d.sync += open_.eq((room.any() | self.release) & ~pace[1:].any())
            with m.If(pace.any()):
                m.d.sync += pace.eq(pace - 1)
        return room, pace, open_

    def _start(self, m, step, lead, begun, going, loading):
        """Rounds before the first k, in which rows of sums start from those of C."""
        row = Signal(range(self.rows))
        loaded = Signal()
        every = (lead.preload & lead.broadcast & ~begun).replicate(self.rows)
        m.d.comb += [
            loading.eq(lead.preload & ~lead.broadcast & ~loaded),
            step.preload.eq(Mux(loading, 1 << row, every) & going.replicate(self.rows)),
            step.c_addr.eq(self.passes.payload.tile.c + row),
        ]
        with m.If(going & (self.slot == self.slots - 1) & loading):
            m.d.sync += [row.eq(row + 1), loaded.eq(row == self.rows - 1)]
        with m.If(self.passes.ready | ~self.passes.valid):
            m.d.sync += [row.eq(0), loaded.eq(0)]

    def _fold(self, m, begins, take, flush, going, pace):
        """Whether a pass may begin: no results are in its way, and no sums but those it goes on."""
        accumulates = self.passes.payload.lead.accumulate
        settled, clean, undrained = Signal(init=1), Signal(init=1), Signal()
        settles = ~(take | flush) & ~pace[1:].any()
        m.d.sync += [
            settled.eq(settles),
            clean.eq(settles & ~undrained & ~going),
            flush.eq(begins & ~accumulates & undrained & ~flush),
        ]
        with m.If(take | flush):
            m.d.sync += undrained.eq(0)
        with m.Elif(going):
            m.d.sync += undrained.eq(1)
        return clean | (settled & accumulates)
