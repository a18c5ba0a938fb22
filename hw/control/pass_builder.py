"""The pass builder: groups consecutive tiles of a job into passes, which the array computes."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import Status

__all__ = ["Pass", "PassBuilder"]


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
