"""The tile generator: goes through the tiles of a job, one row of tiles after the other."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region, Status

__all__ = ["TaggedTile", "Tile", "TileGenerator"]


class Tile(data.StructLayout):
    """One block of C: the addresses of its operands, its size, and the options of its job.

    A failed tile ends a job that was rejected or aborted: its ``status`` is not 0, and it has no
    results. If the core has a C buffer, ``c`` is the address of the first row of C.
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
            "single_word": 1,  # K fits in one word
            "rows": range(a.edge + 1),
            "cols": range(b.edge + 1),
            "last": 1,  # of the job
            "tag": tag,
            "status": 2,
            "failed": 1,
            "accumulate": 1,  # the sums start from the sums in the array
            "hold": 1,  # the sums stay in the array
            "epilogue": epilogue,
        })


class TaggedTile(data.StructLayout):
    """A tile, the index of its job in the job table, and its row ``i`` and column ``j`` in C."""

    def __init__(self, tile, job_index, count):
        super().__init__({"tile": tile, "job_index": job_index, "i": count, "j": count})


class TileGenerator(wiring.Component):
    """``for i in tiles of M: for j in tiles of N``, one tile a cycle.

    The first tile of a job is valid two cycles after the job was taken. The comparisons of sizes
    are computed one tile ahead.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    job : shape
        `weft.hw.control.job_table.JobEntry`.
    count : shape
        A number of panels.
    job_index : shape
        An index of the job table.

    Attributes
    ----------
    jobs : In, stream of ``job``
        Taken while no job is active.
    job_index : In, shape ``job_index``
        Index of the job at ``jobs``.
    rejected : In, 1 bit
        The job taken last is invalid; valid from the cycle after the transfer on.
    abort : In, 1 bit
        Replaces the rest of job ``abort_index`` by one failed tile.
    abort_index : In, shape ``job_index``
    active : Out, 1 bit
        A job is active.
    active_index : Out, shape ``job_index``
        Index of the active job.
    tiles : Out, stream of `TaggedTile`
    """

    def __init__(self, *, geometries, job, count, job_index):
        self.geometries = geometries
        self.job = job
        self.Tile = Tile(geometries, job["epilogue"].shape, job["tag"].shape)
        self.starts = Region.C in geometries
        super().__init__({
            "jobs": In(stream.Signature(job)),
            "job_index": In(job_index),
            "rejected": In(1),
            "abort": In(1),
            "abort_index": In(job_index),
            "active": Out(1),
            "active_index": Out(job_index),
            "tiles": Out(stream.Signature(TaggedTile(self.Tile, job_index, count))),
        })

    def elaborate(self, platform):
        m = Module()
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        job = Signal(self.job)
        status = Signal(Status)
        failed = Signal()  # status is not 0
        out = self.tiles.payload
        i, j = Signal.like(out.i), Signal.like(out.j)
        a_page, b_page = Signal(job.a_page.shape()), Signal(job.b_page.shape())
        m_left, n_left = Signal(job.m.shape()), Signal(job.n.shape())
        last_row, last_col = Signal(), Signal()  # of tiles
        single_col = Signal()  # a row of tiles is one tile
        single_word = Signal()
        tile = out.tile
        m.d.comb += [
            self.jobs.ready.eq(~self.active),
            out.job_index.eq(self.active_index),
            out.i.eq(i),
            out.j.eq(j),
            tile.a_page.eq(a_page),
            tile.b_page.eq(b_page),
            tile.k.eq(job.k),
            tile.single_word.eq(single_word),
            tile.rows.eq(Mux(last_row, m_left, a.edge)),
            tile.cols.eq(Mux(last_col, n_left, b.edge)),
            tile.last.eq((last_row & last_col) | failed),
            tile.tag.eq(job.tag),
            tile.status.eq(status),
            tile.failed.eq(failed),
            tile.accumulate.eq(job.accumulate),
            tile.hold.eq(job.keep),
            tile.epilogue.eq(job.epilogue),
        ]
        # The first cycle of a job has no tile yet: it starts the first row of tiles.
        first_row = ~self.tiles.valid
        first_tile = first_row | last_col  # the next tile is the first one of a row
        with m.If(self.tiles.ready | first_row):
            m.d.sync += [
                n_left.eq(Mux(first_tile, job.n, n_left - b.edge)),
                last_col.eq(Mux(first_tile, single_col, n_left <= 2 * b.edge)),
                b_page.eq(Mux(first_tile, job.b_page, b_page + job.b_pitch)),
                j.eq(Mux(first_tile, 0, j + 1)),
            ]
            with m.If(first_tile):
                m.d.sync += [
                    m_left.eq(Mux(first_row, job.m, m_left - a.edge)),
                    a_page.eq(Mux(first_row, job.a_page, a_page + job.a_pitch)),
                    i.eq(Mux(first_row, 0, i + 1)),
                    last_row.eq(m_left <= 2 * a.edge),
                ]
            with m.If(self.tiles.valid & tile.last):
                m.d.sync += [self.active.eq(0), self.tiles.valid.eq(0)]
        with m.If(first_row):
            m.d.sync += [
                self.tiles.valid.eq(self.active), last_row.eq(job.m <= a.edge),
                last_col.eq(job.n <= b.edge), single_col.eq(job.n <= b.edge),
                single_word.eq(job.k <= a.depth),
                status.eq(Mux(self.rejected, Status.REJECTED, 0)), failed.eq(self.rejected),
            ]
        with m.If(
            self.abort & self.tiles.valid & ~failed & (self.active_index == self.abort_index)
        ):
            m.d.sync += [status.eq(Status.ABORTED), failed.eq(1)]
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += [
                self.active.eq(1), self.active_index.eq(self.job_index),
                job.eq(self.jobs.payload),
            ]
        if self.starts:
            self._starts(m, job, first_row, first_tile)
        return m

    def _starts(self, m, job, first_row, first_tile):
        """The address of a tile's C: ``rows`` words further for each row of tiles.

        A broadcast C has one row, for all rows of tiles.
        """
        tile = self.tiles.payload.tile
        c = Signal(tile.c.shape())
        row_start = Signal(tile.c.shape())  # address for the first tile of the row
        step = Mux(job.broadcast, 0, self.geometries[Region.A].edge)
        next_start = Mux(first_row, job.c_page, row_start + step)
        m.d.comb += [
            tile.preload.eq(job.preload), tile.broadcast.eq(job.broadcast), tile.c.eq(c),
        ]
        with m.If(self.tiles.ready | first_row):
            m.d.sync += c.eq(Mux(first_tile, next_start, c + job.c_pitch))
            with m.If(first_tile):
                m.d.sync += row_start.eq(next_start)
