"""Passes: consecutive tiles of a job, as many as a PE holds sums, computed at once."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import Status

__all__ = ["Pass", "PassBuilder"]


class Pass(data.StructLayout):
    """A pass, and its tile in the slot that is asked for: whether there is one, if it is the last.

    ``lead`` is the tile in slot 0. With a ``status`` in it the pass is void: it ends its job.
    """

    def __init__(self, tile):
        super().__init__({"lead": tile, "tile": tile, "present": 1, "end": 1})


class PassBuilder(wiring.Component):
    """Gathers up to ``slots`` tiles of a job, while the pass before is computed.

    With one slot a pass is its tile, in the same cycle. Else tiles are gathered one a cycle, and
    the pass is offered in the cycle after its last one. A void tile is a pass of its own.

    An abort is for the job whose pass is on offer, or else for the tiler's: what is left of that
    pass and of its job is dropped, and a void pass ends it. A round of slots that has begun goes on
    to its end: in the last one of a job it is too late for an abort.

    Parameters
    ----------
    tile : shape
    slots : int

    Attributes
    ----------
    tiles : In, stream of tiles
    abort : In
        Pulse: end the job that is at work.
    give_up : Out
        Pulse, to the tiler: end the job that you have.
    slot : In
        Which tile to show.
    passes : Out, stream of `Pass`
        A void one is taken in slot 0, any other one in the last slot.
    """

    def __init__(self, *, tile, slots):
        self.slots = slots
        super().__init__({
            "tiles": In(stream.Signature(tile)),
            "abort": In(1),
            "give_up": Out(1),
            "slot": In(range(slots)),
            "passes": Out(stream.Signature(Pass(tile))),
        })

    def elaborate(self, platform):
        return self._gather() if self.slots > 1 else self._through()

    def _through(self):
        m = Module()
        shown = self.passes.payload
        m.d.comb += [
            shown.lead.eq(self.tiles.payload),
            shown.tile.eq(self.tiles.payload),
            shown.present.eq(1),
            shown.end.eq(1),
            self.passes.valid.eq(self.tiles.valid),
            self.tiles.ready.eq(self.passes.ready),
            self.give_up.eq(self.abort),
        ]
        return m

    def _gather(self):
        m = Module()
        new = self.tiles.payload
        # Two banks: one is filled, one is on offer; the same one where nothing is.
        m.submodules.store = store = Memory(
            shape=new.shape(), depth=2 << ceil_log2(self.slots), init=[]
        )
        write, read = store.write_port(), store.read_port(domain="comb")
        banks = range(2)
        lead = Array(Signal(new.shape(), name=f"lead_{n}") for n in banks)
        count = Array(Signal(range(self.slots + 1), name=f"count_{n}") for n in banks)
        ends_job = Array(Signal(name=f"ends_job_{n}") for n in banks)
        full = Signal(2)
        filled, offered = Signal(), Signal()
        pending = Signal()  # an abort
        dropping = Signal()  # up to the end of a job
        given_up = Signal()  # in the cycle before: the tiler has still a tile of that job on offer

        # On offer.
        shown = self.passes.payload
        # Seen in slot 0 only: a round that has begun stays as it is.
        voided = pending & ~lead[offered].failed & (self.slot == 0)
        m.d.comb += [
            self.passes.valid.eq(full.bit_select(offered, 1)),
            read.addr.eq(Cat(self.slot, offered)),
            shown.lead.eq(lead[offered]),
            shown.tile.eq(read.data),
            shown.present.eq(self.slot < count[offered]),
            shown.end.eq(self.slot == count[offered] - 1),
        ]
        with m.If(voided):
            m.d.comb += [
                shown.lead.status.eq(Status.ABORTED),
                shown.tile.status.eq(Status.ABORTED),
                shown.lead.failed.eq(1),
                shown.tile.failed.eq(1),
                shown.tile.last.eq(1),
            ]
        taken = self.passes.valid & self.passes.ready
        with m.If(taken):
            m.d.sync += [
                full.bit_select(offered, 1).eq(0), count[offered].eq(0), offered.eq(~offered),
            ]

        # Gathered.
        held = count[filled]
        alone = new.failed
        open_ = ~full.bit_select(filled, 1) & ~pending & ~dropping & ~given_up
        m.d.sync += given_up.eq(self.give_up)
        close = Signal()
        m.d.comb += [
            self.tiles.ready.eq(dropping | (open_ & ~(alone & held.any()))),
            write.addr.eq(Cat(held[: ceil_log2(self.slots)], filled)),
            write.data.eq(new),
            write.en.eq(open_ & self.tiles.valid & self.tiles.ready),
            close.eq(open_ & self.tiles.valid & (new.last | (held == self.slots - 1))),
        ]
        with m.If(write.en):
            m.d.sync += [count[filled].eq(held + 1), ends_job[filled].eq(new.last)]
            with m.If(held == 0):
                m.d.sync += lead[filled].eq(new)
        with m.If(close):
            m.d.sync += [full.bit_select(filled, 1).eq(1), filled.eq(~filled)]

        # An abort.
        rest = Signal()  # of the job, behind the pass that was voided
        with m.If(self.abort & ~(taken & ends_job[offered])):
            m.d.sync += pending.eq(1)
        with m.If(pending & ~self.passes.valid):
            # What was gathered so far is the tiler's job.
            m.d.comb += self.give_up.eq(1)
            m.d.sync += [pending.eq(0), count[filled].eq(0)]
        with m.If(pending & taken):
            with m.If(voided):
                m.d.sync += pending.eq(0)
                m.d.comb += rest.eq(~ends_job[offered])
            with m.Elif(ends_job[offered]):
                m.d.sync += pending.eq(0)
        with m.If(rest):
            other = ~offered
            done = full.bit_select(other, 1) & ends_job[other]
            m.d.comb += self.give_up.eq(~done)
            m.d.sync += [
                dropping.eq(~done), full.eq(0), count[other].eq(0), filled.eq(other),
            ]
        with m.If(dropping & self.tiles.valid & new.last):
            m.d.sync += dropping.eq(0)
        return m
