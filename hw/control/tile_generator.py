"""The tiles of a job, one row of tiles after the other, each as soon as its panels are loaded."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region, Status

__all__ = ["TaggedTile", "Tile", "TileGate", "TileGenerator"]


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
            "hold": 1,  # the sums stay in the array; the flag KEEP of the job
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
        A job is taken while none is active.
    job_index : In, shape ``job_index``
        Index of the job at ``jobs``.
    rejected : In, 1 bit
        The job that was taken last must not be computed. Valid from the cycle after it was taken.
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
        self.has_c = Region.C in geometries
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
        # The comparisons above are with the numbers of a tile before; the first tile has none, and
        # takes these instead.
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
        if self.has_c:
            self._add_c(m, job, first_row, first_tile)
        return m

    def _add_c(self, m, job, first_row, first_tile):
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


class TileGate(wiring.Component):
    """Tiles in the order of the `TileGenerator`, one every two cycles.

    Three stages keep the paths short; no combinational path runs from ``tiles`` to ``jobs``. The
    tile generator makes the tiles. The wait stage (prefix ``w``) holds a tile until its panels are
    in the buffers. The output stage holds two tiles: the one at ``tiles`` (prefix ``o``) and the
    one behind it (prefix ``s``). The next job is pulled when the last tile of the job before has
    its panels.

    An abort ends the job of the tile in the output register; if that is empty, the job that was
    pulled last. From the second cycle after the abort on, the gate drops the tiles of that
    job, except the last one, which becomes a failed tile. If the last tile has left by then, the
    abort is too late and has no effect.

    Parameters
    ----------
    geometries, job, count, job_index
        As for the `TileGenerator`.

    Attributes
    ----------
    jobs : In, stream of ``job``
    job_index : In, shape ``job_index``
        Index of the job at ``jobs``.
    rejected : In, 1 bit
    ready_panels : In, 2 of shape ``count``
        Both as the outputs of `weft.hw.control.job_table.JobTable`.
    abort : In, 1 bit
        Pulse: end the active job.
    tiles : Out, stream of `weft.hw.control.tile_generator.Tile`
        A valid tile is withdrawn if its job is aborted.
    starved : Out, 1 bit
        No tile is valid, because panels of the next tile are missing.
    """

    def __init__(self, *, geometries, job, count, job_index):
        self.generator = TileGenerator(
            geometries=geometries, job=job, count=count, job_index=job_index
        )
        self.Tile = self.generator.Tile
        super().__init__({
            "jobs": In(stream.Signature(job)),
            "job_index": In(job_index),
            "rejected": In(1),
            "ready_panels": In(data.ArrayLayout(count, 2)),
            "abort": In(1),
            "tiles": Out(stream.Signature(self.Tile)),
            "starved": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.generator = generator = self.generator
        aborting = Signal()  # job `abort_index` was aborted; its tiles are still in the stages
        abort_index = Signal.like(generator.abort_index)
        w_valid, w_ready = Signal(), Signal()  # w_ready: the panels are in the buffers
        w_tile = Signal.like(generator.tiles.payload)
        o_valid, s_valid = Signal(), Signal()
        o_tile, s_tile = Signal.like(w_tile), Signal.like(w_tile)
        w_fire = w_valid & w_ready & ~s_valid

        pull = ~w_valid | w_ready
        m.d.comb += [
            generator.jobs.payload.eq(self.jobs.payload),
            generator.jobs.valid.eq(self.jobs.valid & pull),
            self.jobs.ready.eq(generator.jobs.ready & pull),
            generator.job_index.eq(self.job_index),
            generator.rejected.eq(self.rejected),
            generator.abort.eq(aborting),
            generator.abort_index.eq(abort_index),
            generator.tiles.ready.eq(~w_valid),
            self.tiles.payload.eq(o_tile.tile),
            self.starved.eq(w_valid & ~w_ready & ~o_valid),
        ]
        self._wait_stage(m, w_valid, w_ready, w_tile, w_fire, aborting, abort_index)
        self._abort_target(m, aborting, abort_index, o_valid, o_tile, w_valid)
        self._output_stage(
            m, w_tile, w_fire, o_valid, o_tile, s_valid, s_tile, aborting, abort_index
        )
        return m

    def _wait_stage(self, m, w_valid, w_ready, w_tile, w_fire, aborting, abort_index):
        """Holds a tile until its panels are in the buffers, its job has failed or is aborted."""
        new = self.generator.tiles.payload
        a_panels, b_panels = self.ready_panels
        with m.If(w_fire):
            m.d.sync += w_valid.eq(0)
        with m.If(~w_valid):
            m.d.sync += [
                w_valid.eq(self.generator.tiles.valid), w_tile.eq(new),
                w_ready.eq(((new.i < a_panels) & (new.j < b_panels)) | new.tile.failed),
            ]
        with m.Elif(
            ((w_tile.i < a_panels) & (w_tile.j < b_panels))
            | (aborting & (w_tile.job_index == abort_index))
        ):
            m.d.sync += w_ready.eq(1)

    def _abort_target(self, m, aborting, abort_index, o_valid, o_tile, w_valid):
        """Selects the job that an abort ends: the oldest one in the stages."""
        oldest = Mux(o_valid, o_tile.job_index, self.generator.active_index)
        busy = o_valid | w_valid | self.generator.active
        job_done = Signal()  # the last tile of a job left one cycle ago
        m.d.sync += job_done.eq(self.tiles.valid & self.tiles.ready & o_tile.tile.last)
        with m.If(job_done):
            m.d.sync += aborting.eq(0)
        with m.If(self.abort & busy):
            m.d.sync += [aborting.eq(1), abort_index.eq(oldest)]

    def _output_stage(
        self, m, w_tile, w_fire, o_valid, o_tile, s_valid, s_tile, aborting, abort_index
    ):
        """Two tiles: the output register, and the register behind it that fills while it waits.

        A tile of an aborted job that is not its last one stays in ``o_tile`` for a cycle, but is
        not valid at ``tiles``.
        """
        next_valid = s_valid | w_fire
        advance = ~self.tiles.valid | self.tiles.ready
        next_tile = Signal.like(o_tile)
        next_aborted, o_aborted = (
            aborting & (tile.job_index == abort_index) for tile in (next_tile, o_tile)
        )
        status, failed = o_tile.tile.status, o_tile.tile.failed
        m.d.comb += next_tile.eq(Mux(s_valid, s_tile, w_tile))
        m.d.sync += s_valid.eq(next_valid & ~advance)
        with m.If(advance):
            m.d.sync += [o_valid.eq(next_valid), o_tile.eq(next_tile)]
        # ``advance`` is late, because it depends on ``tiles.ready``. So it only selects: as an
        # enable it would need another LUT and a slow wire.
        m.d.sync += [
            self.tiles.valid.eq(Mux(
                advance,
                next_valid & (~next_aborted | next_tile.tile.last),
                ~o_aborted | o_tile.tile.last,
            )),
            failed.eq(Mux(advance, next_tile.tile.failed | next_aborted, failed | o_aborted)),
            status.eq(Mux(
                advance, _ended(next_tile.tile, next_aborted), _ended(o_tile.tile, o_aborted)
            )),
        ]
        with m.If(~s_valid):
            m.d.sync += s_tile.eq(w_tile)


def _ended(tile, aborted):
    """The status of a tile: ABORTED if its job was ``aborted``, unless it has failed before.

    This is no multiplexer, because synthesis would make the enable of a register of it.
    """
    mark = (aborted & ~tile.failed).replicate(len(tile.status))
    return (tile.status & ~mark) | (int(Status.ABORTED) & mark)
