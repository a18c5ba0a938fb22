"""Passes: consecutive tiles that the array runs as one, and the cycles of each pass."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import Status
from weft.config import PAGE_WORDS
from weft.latencies import STEP

__all__ = ["ArrayStep", "Pass", "PassBuilder", "Sequencer"]


class Pass(data.StructLayout):
    """A pass: its first tile, ``lead``, and the ``tile`` in the slot that the consumer selects.

    ``present``: the slot has a tile. ``end``: it is the last tile of the pass. If ``lead.failed``,
    the pass has no results: it only ends its job.
    """

    def __init__(self, tile):
        super().__init__({"lead": tile, "tile": tile, "present": 1, "end": 1})


class PassBuilder(wiring.Component):
    """Collects up to ``slots`` tiles of a job while the array computes the pass before.

    With one slot a pass is its tile, in the same cycle. With more slots the builder takes one tile
    a cycle, and the pass is valid in the cycle after its last tile. A failed tile is a pass of its
    own.

    An abort ends the job of the valid pass, or, if no pass is valid, the active job of the tile
    gate. The builder drops the rest of that pass and of its job, and ends the job with a failed
    pass. A round of slots that has started goes on to its last slot: in the last round of a job an
    abort is too late.

    Parameters
    ----------
    tile : shape
    slots : int

    Attributes
    ----------
    tiles : In, stream of ``tile``
    abort : In
        Pulse: end the active job.
    cancel : Out
        Pulse, to the tile gate: end your active job.
    slot : In, slot number
        Selects the tile in ``passes``.
    passes : Out, stream of `Pass`
        A failed pass is taken in slot 0, any other pass in the last slot.
    """

    def __init__(self, *, tile, slots):
        self.slots = slots
        super().__init__({
            "tiles": In(stream.Signature(tile)),
            "abort": In(1),
            "cancel": Out(1),
            "slot": In(range(slots)),
            "passes": Out(stream.Signature(Pass(tile))),
        })

    def elaborate(self, platform):
        m = Module()
        if self.slots == 1:
            self._pass_through(m)
            return m
        banks = _Banks(self.tiles.payload.shape(), self.slots)
        m.submodules.store = banks.store
        abort_pending = Signal()
        dropping = Signal()  # the tiles of an aborted job, up to its last one
        pass_fire = self.passes.valid & self.passes.ready
        abort_pass = self._output(m, banks, pass_fire, abort_pending)
        self._collect(m, banks, abort_pending, dropping)
        self._abort(m, banks, pass_fire, abort_pass, abort_pending, dropping)
        return m

    def _pass_through(self, m):
        out = self.passes.payload
        m.d.comb += [
            out.lead.eq(self.tiles.payload),
            out.tile.eq(self.tiles.payload),
            out.present.eq(1),
            out.end.eq(1),
            self.passes.valid.eq(self.tiles.valid),
            self.tiles.ready.eq(self.passes.ready),
            self.cancel.eq(self.abort),
        ]

    def _output(self, m, banks, pass_fire, abort_pending):
        """Sends the pass in the output bank; returns whether an abort makes it a failed one."""
        read = banks.store.read_port(domain="comb")
        lead, count = banks.lead[banks.out], banks.count[banks.out]
        out = self.passes.payload
        # Only in slot 0, because a round that has started must not change.
        abort_pass = abort_pending & ~banks.lead[banks.out].failed & (self.slot == 0)
        m.d.comb += [
            self.passes.valid.eq(banks.full.bit_select(banks.out, 1)),
            read.addr.eq(Cat(self.slot, banks.out)),
            out.lead.eq(lead),
            out.tile.eq(read.data),
            out.present.eq(self.slot < count),
            out.end.eq(self.slot == banks.count[banks.out] - 1),
        ]
        with m.If(abort_pass):
            m.d.comb += [
                out.lead.status.eq(Status.ABORTED),
                out.tile.status.eq(Status.ABORTED),
                out.lead.failed.eq(1),
                out.tile.failed.eq(1),
                out.tile.last.eq(1),
            ]
        with m.If(pass_fire):
            m.d.sync += [
                banks.full.bit_select(banks.out, 1).eq(0), count.eq(0), banks.out.eq(~banks.out),
            ]
        return abort_pass

    def _collect(self, m, banks, abort_pending, dropping):
        """Writes tiles into the fill bank until the pass is complete."""
        write = banks.store.write_port()
        new = self.tiles.payload
        count = banks.count[banks.fill]
        # One cycle after `cancel` the tile gate can still send a tile of the cancelled job.
        r_cancel = Signal()
        m.d.sync += r_cancel.eq(self.cancel)
        collecting = (
            ~banks.full.bit_select(banks.fill, 1) & ~abort_pending & ~dropping & ~r_cancel
        )
        complete = Signal()
        m.d.comb += [
            self.tiles.ready.eq(dropping | (collecting & ~(new.failed & count.any()))),
            write.addr.eq(Cat(count[: ceil_log2(self.slots)], banks.fill)),
            write.data.eq(new),
            write.en.eq(collecting & self.tiles.valid & self.tiles.ready),
            complete.eq(
                collecting & self.tiles.valid & (new.last | (count == self.slots - 1))
            ),
        ]
        with m.If(write.en):
            m.d.sync += [
                banks.count[banks.fill].eq(count + 1), banks.job_end[banks.fill].eq(new.last),
            ]
            with m.If(count == 0):
                m.d.sync += banks.lead[banks.fill].eq(new)
        with m.If(complete):
            m.d.sync += [
                banks.full.bit_select(banks.fill, 1).eq(1), banks.fill.eq(~banks.fill),
            ]

    def _abort(self, m, banks, pass_fire, abort_pass, abort_pending, dropping):
        """Ends the job of the valid pass, or cancels the job of the tile gate."""
        drop_rest = Signal()  # of the job, after its failed pass
        with m.If(self.abort & ~(pass_fire & banks.job_end[banks.out])):
            m.d.sync += abort_pending.eq(1)
        with m.If(abort_pending & ~self.passes.valid):
            # The tiles in the fill bank belong to the job of the tile gate.
            m.d.comb += self.cancel.eq(1)
            m.d.sync += [abort_pending.eq(0), banks.count[banks.fill].eq(0)]
        with m.If(abort_pending & pass_fire):
            with m.If(abort_pass):
                m.d.sync += abort_pending.eq(0)
                m.d.comb += drop_rest.eq(~banks.job_end[banks.out])
            with m.Elif(banks.job_end[banks.out]):
                m.d.sync += abort_pending.eq(0)
        with m.If(drop_rest):
            other = ~banks.out
            # The next pass is complete and has the last tile of the job.
            collected = banks.full.bit_select(other, 1) & banks.job_end[other]
            m.d.comb += self.cancel.eq(~collected)
            m.d.sync += [
                dropping.eq(~collected), banks.full.eq(0), banks.count[other].eq(0),
                banks.fill.eq(other),
            ]
        with m.If(dropping & self.tiles.valid & self.tiles.payload.last):
            m.d.sync += dropping.eq(0)


class _Banks:
    """Two passes: the builder fills one while it sends the other.

    ``fill`` and ``out`` select the banks. They are equal while no pass is complete.
    """

    def __init__(self, tile, slots):
        self.store = Memory(shape=tile, depth=2 << ceil_log2(slots), init=[])
        self.lead = Array(Signal(tile, name=f"lead_{n}") for n in range(2))
        self.count = Array(Signal(range(slots + 1), name=f"count_{n}") for n in range(2))
        self.job_end = Array(Signal(name=f"job_end_{n}") for n in range(2))
        self.full = Signal(2)
        self.fill, self.out = Signal(name="fill"), Signal(name="out")


class ArrayStep(data.StructLayout):
    """One cycle of the array: the addresses of its operands, and the control of the PEs.

    ``preload`` has one bit for each row of the tile whose sums start from the word at ``c_addr``.
    These two fields exist only if the core has a C buffer.
    """

    def __init__(self, geometries, tile, rows, folded):
        a, b = geometries
        starts = {"c_addr": tile["c"].shape, "preload": rows} if "c" in tile.members else {}
        super().__init__({
            "en": 1,
            "clear": 1,  # the sum starts from 0
            "a_addr": ceil_log2(a.words),
            "b_addr": ceil_log2(b.words),
            **starts,
            "capture": 1,  # the step completes a sum, which is a result
            "drain": 1,  # the step completes the last sum of its pass
            **({"flush": 1} if folded else {}),  # no step: the array discards its sums
        })


class Sequencer(wiring.Component):
    """``for word in words of K: for slot in slots``, one step a cycle.

    The inner loop is a round. If the sums start from C, one round for each row of C comes before
    the first word: ``for row in rows: for slot in slots``. A C of one row is broadcast to all rows
    with the first word.

    The last round of a pass waits for a credit, which is space for its results in the result
    buffer, and until the array has drained the pass before (``slots * rows`` cycles). So the stages
    behind the array never stall it. A round that has to wait tries again ``slots`` cycles later.

    Each tile is announced at ``results`` in the cycle of its last step. A failed tile is announced
    alone. Steps and results leave LATENCY cycles after the decision on them.

    If ``folded``, sums are drained through the accumulators: the first round of a pass waits until
    the pass before has drained. Sums that were never drained, because they were held or their job
    was aborted, are flushed before a pass that does not accumulate on them. After a reset the array
    is flushed, too: MAC cells may add products that were in their pipelines.

    The slot counter counts modulo ``slots`` from the first step after an idle phase. It stops only
    while no pass is valid and no sums are held for the next pass.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
        Geometries of A and B.
    tile : shape
        `weft.hw.control.tile_generator.Tile`.
    slots, rows, depth : int
    credits : int
        Passes that the result buffer holds.
    folded : bool
        Requires one slot, and no C buffer.

    Attributes
    ----------
    passes : In, stream of `weft.hw.control.sequencer.Pass`
    slot : Out, slot number
        Selects the tile in ``passes``.
    step : Out, `ArrayStep`
    results : Out, struct
        ``valid``, a tile, its ``slot``, whether it is the ``end`` of its pass, and the last pages
        of A and B that its sums were computed from.
    release : In
        Pulse: the results of a pass have left the result buffer.
    active : Out, 1 bit
        A step enters the array.
    stalled : Out, 1 bit
        A last round waits for a credit.
    """

    LATENCY = STEP

    def __init__(self, *, geometries, tile, slots, rows, depth, credits, folded=False):
        self.slots = slots
        self.rows = rows
        self.depth = depth
        self.credits = credits
        self.folded = folded
        self.starts = "c" in tile.members
        after_reset = {"flush": 1} if folded else None
        self.Results = data.StructLayout({
            "valid": 1, "tile": tile, "slot": range(slots), "end": 1,
            "a_page": tile["a_page"].shape, "b_page": tile["b_page"].shape,
        })
        super().__init__({
            "passes": In(stream.Signature(Pass(tile))),
            "slot": Out(range(slots)),
            "step": Out(ArrayStep(geometries, tile, rows, folded), init=after_reset),
            "results": Out(self.Results),
            "release": In(1),
            "active": Out(1),
            "stalled": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        lead = self.passes.payload.lead
        pass_valid = self.passes.valid & ~lead.failed
        first_slot = self.slot == 0
        last_slot = self.slot == self.slots - 1
        self._count_slots(m, pass_valid, first_slot, last_slot)

        # The position in the pass. It is reset at the end of a pass and while no pass is valid.
        word = Signal(max(len(self.step.a_addr), len(self.step.b_addr)), reset_less=True)
        after_first = Signal(reset_less=True)  # word != 0
        r_last = Signal(reset_less=True)  # the round is the last one, and not the first one
        c_round = Signal()  # the round loads a row of C
        round_en = Signal()  # the round runs
        reserve, flush = Signal(), Signal()  # pulses: the array starts to drain, or to flush
        credit_count, drain_left, may_drain = self._pace(m, reserve, flush)
        first = ~after_first
        array_free = 1
        if self.folded:
            array_free = self._fold(m, pass_valid & first, reserve, flush, round_en, drain_left)
        single_round = first & lead.single_word & ~c_round

        # Decided in the first slot of a round; the other slots follow. `array_free` comes last.
        last_round = r_last | (single_round & array_free)
        drains = last_round & ~lead.hold
        may_end = lead.hold | may_drain
        ends_pass = (r_last & may_end) | (single_round & may_end & array_free)
        may_run = pass_valid & (after_first | array_free) & (ends_pass | ~last_round)
        no_credit = pass_valid & drains & ~credit_count.any()
        r_may_run, r_no_credit = Signal(), Signal()
        with m.If(first_slot):
            m.d.sync += [r_may_run.eq(may_run), r_no_credit.eq(no_credit)]
        pass_end = Mux(first_slot, ends_pass, r_may_run & last_round)
        m.d.comb += [
            round_en.eq(Mux(first_slot, may_run, r_may_run)),
            reserve.eq(pass_valid & ends_pass & ~lead.hold & first_slot),
            self.passes.ready.eq((pass_end & last_slot) | (lead.failed & first_slot)),
            self.stalled.eq(Mux(first_slot, no_credit, r_no_credit)),
        ]
        self._advance(m, round_en & last_slot & ~c_round, word, after_first, r_last)

        step, results = Signal.like(self.step), Signal.like(self.results)
        clear = ~after_first & ~lead.accumulate
        if self.starts:
            clear &= ~lead.preload
            self._start(m, step, after_first, round_en, c_round)
        present = self.passes.payload.present
        m.d.comb += [
            step.en.eq(round_en & present & ~c_round),
            step.clear.eq(round_en & clear),
            step.capture.eq(round_en & drains),
            step.drain.eq(round_en & drains & last_slot),
            results.valid.eq(
                (self.passes.valid & lead.failed & first_slot) | (pass_valid & pass_end & present)
            ),
        ]
        if self.folded:
            m.d.comb += step.flush.eq(flush)
        self._output(m, step, results, word)
        return m

    def _count_slots(self, m, pass_valid, first_slot, last_slot):
        """Counts while a round has started, a pass is valid, or sums are held for the next pass."""
        if self.slots == 1:
            return
        hold = Signal()  # the sums of the pass before
        with m.If(self.passes.ready & pass_valid):
            m.d.sync += hold.eq(self.passes.payload.lead.hold)
        with m.If(~first_slot | pass_valid | hold):
            m.d.sync += self.slot.eq(Mux(last_slot, 0, self.slot + 1))

    def _pace(self, m, reserve, flush):
        """Credits, the cycles until the next drain may start, and whether both allow a drain.

        The last one is computed a cycle ahead.
        """
        drain_cycles = self.slots * self.rows + self.folded
        credit_count = Signal(range(self.credits + 1), init=self.credits)
        # After a reset a folded array flushes.
        drain_left = Signal(range(drain_cycles), init=(drain_cycles - 1) * self.folded)
        may_drain = Signal(init=not self.folded)
        # ``reserve`` comes late: it selects one of two counts. ``- ~release`` is ``+ release - 1``.
        m.d.sync += credit_count.eq(
            Mux(reserve, credit_count - ~self.release, credit_count + self.release)
        )
        with m.If(reserve | flush):
            m.d.sync += [
                drain_left.eq(drain_cycles - 1),
                may_drain.eq(((credit_count > 1) | self.release) & (drain_cycles == 1)),
            ]
        with m.Else():
            m.d.sync += may_drain.eq((credit_count.any() | self.release) & ~drain_left[1:].any())
            with m.If(drain_left.any()):
                m.d.sync += drain_left.eq(drain_left - 1)
        return credit_count, drain_left, may_drain

    def _advance(self, m, word_done, word, after_first, r_last):
        """Counts the words of the pass; the last one is detected a round ahead."""
        k = self.passes.payload.lead.k
        max_ahead = (1 << len(k)) + 2 * self.depth
        # k at the start of the round after the next one.
        k_ahead = Signal(range(max_ahead + 1), init=2 * self.depth, reset_less=True)
        with m.If(word_done):
            m.d.sync += [
                after_first.eq(1), word.eq(word + 1),
                r_last.eq(k_ahead >= k), k_ahead.eq(k_ahead + self.depth),
            ]
        with m.If(self.passes.ready | ~self.passes.valid):
            m.d.sync += [after_first.eq(0), word.eq(0), r_last.eq(0), k_ahead.eq(2 * self.depth)]

    def _start(self, m, step, after_first, round_en, c_round):
        """The rounds before the first word, each of which starts a row of sums from C."""
        lead = self.passes.payload.lead
        row = Signal(range(self.rows))
        rows_done = Signal()
        broadcast = (lead.preload & lead.broadcast & ~after_first).replicate(self.rows)
        m.d.comb += [
            c_round.eq(lead.preload & ~lead.broadcast & ~rows_done),
            step.preload.eq(Mux(c_round, 1 << row, broadcast) & round_en.replicate(self.rows)),
            step.c_addr.eq(self.passes.payload.tile.c + row),
        ]
        with m.If(round_en & (self.slot == self.slots - 1) & c_round):
            m.d.sync += [row.eq(row + 1), rows_done.eq(row == self.rows - 1)]
        with m.If(self.passes.ready | ~self.passes.valid):
            m.d.sync += [row.eq(0), rows_done.eq(0)]

    def _fold(self, m, pass_starts, reserve, flush, round_en, drain_left):
        """Whether a pass may start in a folded array.

        The array must have drained, and must hold no sums except those that the pass accumulates
        on; otherwise the array is flushed.
        """
        accumulate = self.passes.payload.lead.accumulate
        drained, empty = Signal(), Signal()
        undrained = Signal()  # the array has sums for which no drain has started
        next_drained = ~(reserve | flush) & ~drain_left[1:].any()
        m.d.sync += [
            drained.eq(next_drained),
            empty.eq(next_drained & ~undrained & ~round_en),
            flush.eq(pass_starts & ~accumulate & undrained & ~flush),
        ]
        with m.If(reserve | flush):
            m.d.sync += undrained.eq(0)
        with m.Elif(round_en):
            m.d.sync += undrained.eq(1)
        return empty | (drained & accumulate)

    def _output(self, m, step, results, word):
        """The other fields of a step and of the announced tile; both are registered."""
        tile = self.passes.payload.tile
        m.d.comb += [
            step.a_addr.eq(tile.a_page * PAGE_WORDS + word),
            step.b_addr.eq(tile.b_page * PAGE_WORDS + word),
            results.tile.eq(tile),
            results.slot.eq(self.slot),
            results.a_page.eq(step.a_addr >> ceil_log2(PAGE_WORDS)),
            results.b_page.eq(step.b_addr >> ceil_log2(PAGE_WORDS)),
            results.end.eq(self.passes.payload.end),
            self.active.eq(self.step.en),
        ]
        m.d.sync += [self.step.eq(step), self.results.eq(results)]
