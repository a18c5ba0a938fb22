"""The tile gate: the tiles of each job, each sent as soon as its panels are in the buffers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Status
from weft.hw.control.tile_generator import TileGenerator

__all__ = ["TileGate"]


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
        As the outputs of `weft.hw.control.job_table.JobTable`.
    abort : In
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
        # ``advance`` comes last: it selects, and enables nothing.
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
    """The status of a tile, if ``aborted`` the one of an aborted job, unless the tile has failed.

    Without a multiplexer, of which synthesis would make the enable of a register.
    """
    mark = (aborted & ~tile.failed).replicate(len(tile.status))
    return (tile.status & ~mark) | (int(Status.ABORTED) & mark)
