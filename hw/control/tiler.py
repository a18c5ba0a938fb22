"""The tiler: a job becomes its tiles, row of tiles by row of tiles."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region, Status

__all__ = ["Tile", "Tiler"]


class Tile(data.StructLayout):
    """One block of C: where its panels lie, how much of it there is, and what the job wants of it.

    With a ``status`` other than 0 the tile is void: it ends its job and has no results. Where there
    is a C, the tile's first row of it is word ``c``.
    """

    def __init__(self, geometries, finish):
        a, b = geometries[Region.A], geometries[Region.B]
        start = {}
        if Region.C in geometries:
            start = {"c": range(geometries[Region.C].words), "preload": 1, "broadcast": 1}
        super().__init__({
            **start,
            "a_page": range(a.pages),
            "b_page": range(b.pages),
            "k": range(min(a.words, b.words) * a.depth + 1),
            "rows": range(a.edge + 1),
            "cols": range(b.edge + 1),
            "last": 1,
            "tag": 16,
            "status": 2,
            "accumulate": 1,
            "keep": 1,
            "finish": finish,
        })


class Tiler(wiring.Component):
    """``for i in tiles of M: for j in tiles of N``, a tile a cycle, without a gap between jobs.

    A tile is offered once its panels are ready. An abort makes the tile on offer void, even one
    under way, and the job end with it.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    job : shape
        What the jobs are.

    Attributes
    ----------
    jobs : In, stream of jobs
    loaded : In, 2 counts
        Panels ready of A and B of the job taken last.
    abort : In
        Pulse: end the job that the tiler has.
    tiles : Out, stream of `Tile`
    starved : Out
        There is a job, and its next panels are not there.
    """

    def __init__(self, *, geometries, job, count):
        self.geometries = geometries
        self.job = job
        self.count = count
        self.Tile = Tile(geometries, job["finish"].shape)
        self.starts = Region.C in geometries
        super().__init__({
            "jobs": In(stream.Signature(job)),
            "loaded": In(data.ArrayLayout(count, 2)),
            "abort": In(1),
            "tiles": Out(stream.Signature(self.Tile)),
            "starved": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        active = Signal()
        job = Signal(self.job)  # as it came
        m_left = Signal(job.m.shape())
        n_left = Signal(job.n.shape())
        a_page = Signal(job.a_page.shape())
        b_page = Signal(job.b_page.shape())
        i = Signal(self.count)
        j = Signal(self.count)

        void = job.status != 0
        ready = (i < self.loaded[0]) & (j < self.loaded[1])
        m_last = m_left <= a.edge
        n_last = n_left <= b.edge
        tile = self.tiles.payload
        m.d.comb += [
            self.tiles.valid.eq(active & (ready | void)),
            self.starved.eq(active & ~ready & ~void),
            tile.a_page.eq(a_page),
            tile.b_page.eq(b_page),
            tile.k.eq(job.k),
            tile.rows.eq(Mux(m_last, m_left, a.edge)),
            tile.cols.eq(Mux(n_last, n_left, b.edge)),
            tile.last.eq((m_last & n_last) | void),
            tile.tag.eq(job.tag),
            tile.status.eq(job.status),
            *(tile[name].eq(job[name]) for name in ("accumulate", "keep", "finish")),
        ]
        taken = self.tiles.valid & self.tiles.ready
        m.d.comb += self.jobs.ready.eq(~active | (taken & tile.last))
        with m.If(taken):
            m.d.sync += [n_left.eq(n_left - b.edge), b_page.eq(b_page + job.b_pitch), j.eq(j + 1)]
            with m.If(n_last):
                m.d.sync += [n_left.eq(job.n), b_page.eq(job.b_page), j.eq(0)]
                m.d.sync += [m_left.eq(m_left - a.edge), i.eq(i + 1)]
                m.d.sync += a_page.eq(a_page + job.a_pitch)
        with m.If(self.abort & active & ~void):
            m.d.sync += job.status.eq(Status.ABORTED)
        with m.If(self.jobs.ready):
            new = self.jobs.payload
            m.d.sync += [active.eq(self.jobs.valid), job.eq(new), i.eq(0), j.eq(0)]
            m.d.sync += [m_left.eq(new.m), n_left.eq(new.n)]
            m.d.sync += [a_page.eq(new.a_page), b_page.eq(new.b_page)]
        if self.starts:
            self._start(m, job, taken, n_last)
        return m

    def _start(self, m, job, taken, n_last):
        """Where the C of a tile is: ``rows`` words from tile to tile of a panel, or always one."""
        tile, new = self.tiles.payload, self.jobs.payload
        row = Signal(tile.c.shape())  # of the first panel
        following = row + Mux(job.broadcast, 0, self.geometries[Region.A].edge)
        m.d.comb += [tile.preload.eq(job.preload), tile.broadcast.eq(job.broadcast)]
        c = Signal(tile.c.shape())
        m.d.comb += tile.c.eq(c)
        with m.If(taken):
            m.d.sync += c.eq(c + job.c_pitch)
            with m.If(n_last):
                m.d.sync += [c.eq(following), row.eq(following)]
        with m.If(self.jobs.ready):
            m.d.sync += [c.eq(new.c_page), row.eq(new.c_page)]
