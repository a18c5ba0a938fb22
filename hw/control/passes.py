"""Passes: consecutive tiles of a job, as many as a PE holds sums, computed at once."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pass", "Passes"]


class Pass(data.StructLayout):
    """``slots`` tiles of one job, those from the first on that are ``active``."""

    def __init__(self, tile, slots):
        super().__init__({"tiles": data.ArrayLayout(tile, slots), "active": slots})


class Passes(wiring.Component):
    """Gathers up to ``slots`` tiles; a job's last pass may hold fewer.

    With one slot a pass is its tile, in the same cycle; else a pass is offered in the cycle after
    its last tile, and the next one is gathered when it has been taken. A void tile is a pass of
    its own: it ends the one that is being gathered, and waits for the next.

    Parameters
    ----------
    tile : shape
    slots : int

    Attributes
    ----------
    tiles : In, stream of tiles
    passes : Out, stream of `Pass`
    """

    def __init__(self, *, tile, slots):
        self.slots = slots
        super().__init__({
            "tiles": In(stream.Signature(tile)),
            "passes": Out(stream.Signature(Pass(tile, slots))),
        })

    def elaborate(self, platform):
        m = Module()
        gathered = self.passes.payload
        if self.slots == 1:
            m.d.comb += [
                gathered.tiles[0].eq(self.tiles.payload),
                gathered.active.eq(1),
                self.passes.valid.eq(self.tiles.valid),
                self.tiles.ready.eq(self.passes.ready),
            ]
            return m
        store = Signal.like(gathered)
        slot = Signal(range(self.slots))
        full = Signal()
        parts = (self.tiles.payload.status != 0) & (slot != 0)
        m.d.comb += [
            gathered.eq(store),
            self.passes.valid.eq(full),
            self.tiles.ready.eq(~full & ~parts),
        ]
        with m.If(self.tiles.valid & ~full & parts):
            m.d.sync += full.eq(1)
        with m.Elif(self.tiles.valid & ~full):
            for n in range(self.slots):
                with m.If(slot == n):
                    m.d.sync += [store.tiles[n].eq(self.tiles.payload), store.active[n].eq(1)]
            m.d.sync += slot.eq(slot + 1)
            with m.If((slot == self.slots - 1) | self.tiles.payload.last):
                m.d.sync += full.eq(1)
        with m.If(full & self.passes.ready):
            m.d.sync += [full.eq(0), slot.eq(0), store.active.eq(0)]
        return m
