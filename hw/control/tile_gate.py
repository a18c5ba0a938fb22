"""The tiler: a job becomes its tiles, each on offer once its panels are in the buffers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Status
from weft.hw.control.tile_generator import TileGenerator

__all__ = ["TileGate"]


class TileGate(wiring.Component):
    """Tiles in the order of the `TileGenerator`, one in two cycles.

    A tile leaves the walker for a station where it waits for its panels, and that for a queue of
    two: so no path is long, and none goes from one end to the other. The next job is pulled once
    the last tile of the one before has its panels.

    An abort is for the job of the tile on offer, or else of the next one that there is. From the
    second cycle after it on the job's tiles are dropped but for the last, which is void; where that
    has been taken by then, it was too late.

    Parameters
    ----------
    geometries, job, count, owner
        As of the `TileGenerator`.

    Attributes
    ----------
    jobs : In, stream of jobs
    owner, rejected, loaded : In
        What `weft.hw.control.job_table.JobTable` says of them.
    abort : In
        Pulse: end the job that is at work.
    tiles : Out, stream of `weft.hw.control.tile_generator.Tile`
        A tile on offer is withdrawn if its job is aborted.
    starved : Out
        No tile is on offer, since the panels of the next one are not there.
    """

    def __init__(self, *, geometries, job, count, owner):
        self.walker = TileGenerator(geometries=geometries, job=job, count=count, owner=owner)
        self.Tile = self.walker.Tile
        super().__init__({
            "jobs": In(stream.Signature(job)),
            "owner": In(owner),
            "rejected": In(1),
            "loaded": In(data.ArrayLayout(count, 2)),
            "abort": In(1),
            "tiles": Out(stream.Signature(self.Tile)),
            "starved": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker = walker = self.walker
        new = walker.tiles.payload
        ended = Signal()  # a job is aborted:
        victim = Signal.like(walker.victim)  # this one

        # Waiting for panels: what is in the buffers is compared as a tile comes, and then on.
        waits, there = Signal(), Signal()
        place = Signal.like(new)
        spare_waits = Signal()
        spare = Signal.like(new)
        pulls = ~waits | there
        go = waits & there & ~spare_waits
        m.d.comb += [
            walker.jobs.payload.eq(self.jobs.payload),
            walker.jobs.valid.eq(self.jobs.valid & pulls),
            self.jobs.ready.eq(walker.jobs.ready & pulls),
            walker.owner.eq(self.owner),
            walker.rejected.eq(self.rejected),
            walker.end.eq(ended),
            walker.victim.eq(victim),
            walker.tiles.ready.eq(~waits),
        ]
        a, b = self.loaded
        with m.If(go):
            m.d.sync += waits.eq(0)
        with m.If(~waits):
            m.d.sync += [
                waits.eq(walker.tiles.valid), place.eq(new),
                there.eq(((new.i < a) & (new.j < b)) | new.tile.failed),
            ]
        with m.Elif(((place.i < a) & (place.j < b)) | (ended & (place.owner == victim))):
            m.d.sync += there.eq(1)

        # On offer, and the one behind it.
        offers = Signal()
        offer = Signal.like(new)
        skips = Signal()  # its job is aborted and goes on behind it: it goes, seen by nobody
        following = Signal.like(new)
        m.d.comb += [
            following.eq(Mux(spare_waits, spare, place)),
            self.tiles.payload.eq(offer.tile),
        ]
        moves = ~self.tiles.valid | self.tiles.ready
        left = Signal()  # the last tile of a job, a cycle ago
        m.d.sync += left.eq(self.tiles.valid & self.tiles.ready & offer.tile.last)

        # The job at work is that of the tile on offer, or else the one that was pulled last.
        oldest = Mux(offers, offer.owner, walker.at_work)
        some = offers | waits | walker.active
        with m.If(left):
            m.d.sync += ended.eq(0)
        with m.If(self.abort & some):
            m.d.sync += [ended.eq(1), victim.eq(oldest)]
        arrives = spare_waits | go
        chosen = ended & (following.owner == victim)
        with m.If(moves):
            m.d.sync += [
                offers.eq(arrives), offer.eq(following), spare_waits.eq(0),
                skips.eq(arrives & chosen & ~following.tile.last),
                self.tiles.valid.eq(arrives & ~(chosen & ~following.tile.last)),
            ]
            with m.If(chosen & ~following.tile.failed):
                m.d.sync += [offer.tile.status.eq(Status.ABORTED), offer.tile.failed.eq(1)]
        with m.Else():
            with m.If(ended & (offer.owner == victim)):
                m.d.sync += [skips.eq(~offer.tile.last), self.tiles.valid.eq(offer.tile.last)]
                with m.If(~offer.tile.failed):
                    m.d.sync += [offer.tile.status.eq(Status.ABORTED), offer.tile.failed.eq(1)]
            with m.If(go):
                m.d.sync += spare_waits.eq(1)
        with m.If(~spare_waits):
            m.d.sync += spare.eq(place)
        m.d.comb += self.starved.eq(waits & ~there & ~offers)
        return m
