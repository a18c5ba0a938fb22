"""The walker: goes through the tiles of a job, row of tiles by row of tiles."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region, Status

__all__ = ["TaggedTile", "Tile", "TileGenerator"]


class Tile(data.StructLayout):
    """One block of C: where its panels lie, how much of it there is, and what the job wants of it.

    A void tile, whose ``status`` is other than 0, ends its job and has no results. Where there is a
    C, the tile's first row of it is word ``c``.
    """

    def __init__(self, geometries, epilogue, tag=16):
        a, b = geometries[Region.A], geometries[Region.B]
        start = {}
        if Region.C in geometries:
            start = {"c": range(geometries[Region.C].words), "preload": 1, "broadcast": 1}
        super().__init__({
            **start,
            "a_page": range(a.pages),
            "b_page": range(b.pages),
            "k": range(min(a.words, b.words) * a.depth + 1),
            "single_word": 1,  # all of K is one word
            "rows": range(a.edge + 1),
            "cols": range(b.edge + 1),
            "last": 1,
            "tag": tag,
            "status": 2,
            "failed": 1,
            "accumulate": 1,
            "hold": 1,
            "epilogue": epilogue,
        })


class TaggedTile(data.StructLayout):
    """A tile, the job that it is of, by its place in the job table, and where in C it is."""

    def __init__(self, tile, owner, count):
        super().__init__({"tile": tile, "owner": owner, "i": count, "j": count})


class TileGenerator(wiring.Component):
    """``for i in tiles of M: for j in tiles of N``, a tile a cycle.

    A job pulled in one cycle is looked at in the next, and its first tile is there in the one after
    that. Sizes are compared a tile ahead.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    job, count, owner : shape
        Of jobs, of panels, of a place in the job table.

    Attributes
    ----------
    jobs : In, stream of jobs
        Taken when there is none at work.
    owner : In
        The place of the job on offer.
    rejected : In
        The job taken last cannot be run; right from the cycle after it was taken.
    end, victim : In
        Make of what is left of the job in this place one void tile.
    active : Out
        There is a job at work,
    at_work : Out
        the one of this place.
    tiles : Out, stream of `TaggedTile`
    """

    def __init__(self, *, geometries, job, count, owner):
        self.geometries = geometries
        self.job = job
        self.Tile = Tile(geometries, job["epilogue"].shape, job["tag"].shape)
        self.starts = Region.C in geometries
        super().__init__({
            "jobs": In(stream.Signature(job)),
            "owner": In(owner),
            "rejected": In(1),
            "end": In(1),
            "victim": In(owner),
            "active": Out(1),
            "at_work": Out(owner),
            "tiles": Out(stream.Signature(TaggedTile(self.Tile, owner, count))),
        })

    def elaborate(self, platform):
        m = Module()
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        job = Signal(self.job)  # as it came
        seen = Signal()
        status = Signal(Status)
        void = status != 0
        place = Signal.like(self.tiles.payload)
        i, j = Signal.like(place.i), Signal.like(place.j)
        a_page, b_page = Signal(job.a_page.shape()), Signal(job.b_page.shape())
        m_left, n_left = Signal(job.m.shape()), Signal(job.n.shape())
        m_last, n_last = Signal(), Signal()
        n_single = Signal()  # there is one tile in a row of them
        short = Signal()
        tile = self.tiles.payload.tile
        m.d.comb += [
            self.jobs.ready.eq(~self.active),
            self.tiles.valid.eq(seen),
            self.tiles.payload.owner.eq(self.at_work),
            self.tiles.payload.i.eq(i),
            self.tiles.payload.j.eq(j),
            tile.a_page.eq(a_page),
            tile.b_page.eq(b_page),
            tile.k.eq(job.k),
            tile.single_word.eq(short),
            tile.rows.eq(Mux(m_last, m_left, a.edge)),
            tile.cols.eq(Mux(n_last, n_left, b.edge)),
            tile.last.eq((m_last & n_last) | void),
            tile.tag.eq(job.tag),
            tile.status.eq(status),
            tile.failed.eq(void),
            tile.accumulate.eq(job.accumulate),
            tile.hold.eq(job.keep),
            tile.epilogue.eq(job.epilogue),
        ]
        taken = self.tiles.valid & self.tiles.ready
        with m.If(taken):
            m.d.sync += [
                n_left.eq(n_left - b.edge), n_last.eq(n_left <= 2 * b.edge),
                b_page.eq(b_page + job.b_pitch), j.eq(j + 1),
            ]
            with m.If(n_last):
                m.d.sync += [
                    n_left.eq(job.n), n_last.eq(n_single), b_page.eq(job.b_page), j.eq(0),
                    m_left.eq(m_left - a.edge), m_last.eq(m_left <= 2 * a.edge),
                    a_page.eq(a_page + job.a_pitch), i.eq(i + 1),
                ]
            with m.If(tile.last):
                m.d.sync += [self.active.eq(0), seen.eq(0)]
        with m.If(self.active & ~seen):
            m.d.sync += [
                seen.eq(1), m_last.eq(job.m <= a.edge), n_last.eq(job.n <= b.edge),
                n_single.eq(job.n <= b.edge), short.eq(job.k <= a.depth),
            ]
            with m.If(self.rejected):
                m.d.sync += status.eq(Status.REJECTED)
        with m.If(self.end & seen & ~void & (self.at_work == self.victim)):
            m.d.sync += status.eq(Status.ABORTED)
        with m.If(self.jobs.valid & self.jobs.ready):
            new = self.jobs.payload
            m.d.sync += [
                self.active.eq(1), self.at_work.eq(self.owner), job.eq(new), status.eq(0),
                i.eq(0), j.eq(0), m_left.eq(new.m), n_left.eq(new.n),
                a_page.eq(new.a_page), b_page.eq(new.b_page),
            ]
        if self.starts:
            self._start(m, job, taken, n_last)
        return m

    def _start(self, m, job, taken, n_last):
        """Where the C of a tile is: ``rows`` words from tile to tile of a panel, or always one."""
        tile, new = self.tiles.payload.tile, self.jobs.payload
        row = Signal(tile.c.shape())  # of the first panel
        following = row + Mux(job.broadcast, 0, self.geometries[Region.A].edge)
        m.d.comb += [tile.preload.eq(job.preload), tile.broadcast.eq(job.broadcast)]
        c = Signal(tile.c.shape())
        m.d.comb += tile.c.eq(c)
        with m.If(taken):
            m.d.sync += c.eq(c + job.c_pitch)
            with m.If(n_last):
                m.d.sync += [c.eq(following), row.eq(following)]
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += [c.eq(new.c_page), row.eq(new.c_page)]
