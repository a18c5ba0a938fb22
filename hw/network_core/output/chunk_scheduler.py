"""The chunk scheduler: requests the results of tiles, chunk by chunk, when they can be scaled."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.network_core.layouts import ComputedTile, MapChunk
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core import latencies

__all__ = ["ChunkGenerator", "ChunkScheduler"]


class ChunkGenerator(wiring.Component):
    """``for row in rows of the tile: for chunk in chunks of the row``, one chunk a cycle.

    With the option ``two_rows`` a chunk is a row of the array, and a row of the result buffer has
    two of them. If the job stores both at once, there is a chunk for each row of the buffer.

    An announcement cannot be refused: ``depth`` covers all tiles in flight.

    Parameters
    ----------
    config : NetworkCoreConfig
    depth : int
        Tiles that wait for their chunks.

    Attributes
    ----------
    tiles : In, `weft.hw.network_core.layouts.ComputedTile`
    pairs : In, 1 bit; only with the option ``two_rows``
        The job of the chunks stores two rows at once.
    chunks : Out, stream of `weft.hw.network_core.layouts.MapChunk`
    """

    def __init__(self, config, *, depth):
        self.config = config
        self.lanes = config.array.lanes
        self.depth = depth
        tile = ComputedTile(config)
        # The numbers of the last row and chunk are computed before the FIFO.
        self.Entry = data.StructLayout({
            "row_last": range(config.array.rows),
            "index_last": range(config.row_chunks),
            "lane_last": range(self.lanes),
            **{name: tile[name].shape for name in ("line", "tile_last", "last")},
        })
        super().__init__({
            "tiles": In(tile),
            **({"pairs": In(1)} if config.two_rows else {}),
            "chunks": Out(stream.Signature(MapChunk(config))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=self.Entry.size, depth=self.depth)
        entry, column_last = Signal(self.Entry), Signal(range(1 << len(self.tiles.cols)))
        m.d.comb += [
            column_last.eq(self.tiles.cols - 1),
            entry.row_last.eq(self.tiles.rows - 1),
            entry.index_last.eq(column_last >> ceil_log2(self.lanes)),
            entry.lane_last.eq(column_last),
            entry.line.eq(self.tiles.line),
            entry.tile_last.eq(self.tiles.tile_last),
            entry.last.eq(self.tiles.last),
            fifo.w_en.eq(self.tiles.valid),
            fifo.w_data.eq(entry),
        ]
        tile, chunk = self.Entry(fifo.r_data), self.chunks.payload
        row, index = Signal.like(entry.row_last), Signal.like(entry.index_last)
        # Rows of the array in a chunk, its place in a row of the buffer, whether it ends the tile.
        rows, place, last = 1, index, row == tile.row_last if len(row) else 1
        if self.config.two_rows:
            rows, place, last = 1 + self.pairs, row[0], (row | self.pairs) == tile.row_last
            m.d.comb += chunk.pair_end.eq(self.pairs | row[0] | last)
        m.d.comb += [
            self.chunks.valid.eq(fifo.r_rdy),
            chunk.index.eq(place),
            chunk.line.eq(tile.line + index),
            # Verilator reports a comparison that is always true.
            chunk.row_end.eq(index == tile.index_last if len(index) else 1),
            chunk.lane_last.eq(Mux(chunk.row_end, tile.lane_last, self.lanes - 1)),
            chunk.tile_end.eq(chunk.row_end & last),
            chunk.panel_end.eq(chunk.tile_end & tile.tile_last),
            chunk.last.eq(chunk.tile_end & tile.last),
            fifo.r_en.eq(self.chunks.ready & chunk.tile_end),
        ]
        with m.If(self.chunks.valid & self.chunks.ready):
            m.d.sync += index.eq(Mux(chunk.row_end, 0, index + 1))
            with m.If(chunk.row_end):
                m.d.sync += row.eq(Mux(chunk.tile_end, 0, row + rows))
        return m


class ChunkScheduler(wiring.Component):
    """Requests a chunk when its row is in the result buffer and the scalers are ready.

    With ADD the added values of a chunk are read first: ``added`` has each chunk as soon as its
    tile is announced, and its request waits for ``added_ready``. The request of the last chunk of a
    tile releases the rows of the tile, ``rows`` of them also if the tile has fewer.

    Parameters
    ----------
    config : NetworkCoreConfig
    buffer_rows : int
        Depth of the result buffer in rows; a power of two.

    Attributes
    ----------
    add : In, 1 bit
        The job has ADD.
    tiles : In, `weft.hw.network_core.layouts.ComputedTile`
    added : Out, stream of `weft.hw.network_core.layouts.MapChunk`
        Chunks whose added values are to be read; only with ADD.
    added_ready : In, 1 bit
        The added values of the next chunk have arrived; only used with ADD.
    ready : In, 1 bit
        The scalers can take a chunk.
    row_written : In, 1 bit
        Pulse: the result buffer has one more row, readable from the next cycle on.
    request : Out, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The chunk that is requested in this cycle.
    address, index : Out
        Row of the result buffer and position of the chunk in it,
        `weft.network_core.latencies.read_delay` cycles after the request.
    release : Out, 1 bit
        Pulse: all results of a tile have been requested.
    start : In, 1 bit; only with the option ``early``
        Pulse: the output of a job with tiles starts. Tiles that come earlier wait for it.
    pairs : In, 1 bit; only with the option ``two_rows``
        The job stores two rows at once.
    """

    def __init__(self, config, *, buffer_rows):
        self.config = config
        self.buffer_rows = buffer_rows
        self.read_delay = latencies.read_delay(config.array)
        self.Chunk = MapChunk(config)
        super().__init__({
            "add": In(1),
            "tiles": In(ComputedTile(config)),
            "added": Out(stream.Signature(self.Chunk)),
            "added_ready": In(1),
            "ready": In(1),
            "row_written": In(1),
            "request": Out(data.StructLayout({"valid": 1, "chunk": self.Chunk})),
            "address": Out(ceil_log2(buffer_rows)),
            "index": Out(self.Chunk["index"].shape),
            "release": Out(1),
            **({"start": In(1)} if config.early else {}),
            **({"pairs": In(1)} if config.two_rows else {}),
        })

    def elaborate(self, platform):
        m = Module()
        fifo = self._waiting(m)
        fire, chunk = self.request.valid, self.request.chunk
        m.d.comb += [
            fire.eq(
                fifo.r_rdy & self._nonempty(m) & self.ready & (~self.add | self.added_ready)
            ),
            chunk.eq(fifo.r_data),
            fifo.r_en.eq(fire),
            self.index.eq(pipeline(m, chunk.index, self.read_delay, "index")),
            self.release.eq(fire & chunk.tile_end),
        ]
        return m

    def _waiting(self, m):
        """A FIFO of the chunks that wait for their request."""
        m.submodules.generator = generator = ChunkGenerator(
            self.config, depth=self.buffer_rows // self.config.tile_rows
        )
        if self.config.two_rows:
            m.d.comb += generator.pairs.eq(self.pairs)
        m.submodules.waiting = fifo = SyncFIFOBuffered(
            width=self.Chunk.size, depth=latencies.waiting_chunks(self.config)
        )
        m.submodules.skid = skid = SkidBuffer(self.Chunk)
        if self.config.early:
            self._hold(m, generator.chunks, skid.i)
        else:
            connect(m, generator.chunks, skid.i)
        chunks = skid.o
        m.d.comb += [
            generator.tiles.eq(self.tiles),
            self.added.valid.eq(chunks.valid & fifo.w_rdy & self.add),
            self.added.payload.eq(chunks.payload),
            chunks.ready.eq(fifo.w_rdy & (~self.add | self.added.ready)),
            fifo.w_en.eq(chunks.valid & chunks.ready),
            fifo.w_data.eq(chunks.payload),
        ]
        return fifo

    def _hold(self, m, generated, chunks):
        """Hold the chunks of the next job from the last chunk of a job to the next start."""
        opened = Signal()
        m.d.comb += [
            chunks.valid.eq(generated.valid & opened), chunks.payload.eq(generated.payload),
            generated.ready.eq(chunks.ready & opened),
        ]
        with m.If(generated.valid & generated.ready & generated.payload.last):
            m.d.sync += opened.eq(0)
        with m.If(self.start):
            m.d.sync += opened.eq(1)

    def _nonempty(self, m):
        """Whether the next row is in the result buffer; counts rows and moves to the next one."""
        rows, chunk = self.config.tile_rows, self.request.chunk
        row_end = chunk.pair_end if self.config.two_rows else chunk.row_end
        pointer = Signal(len(self.address))
        remaining = Signal(range(rows), init=rows - 1)  # rows of the tile after this one
        # Rows in the buffer from the pointer on, minus one: below 0 while the buffer is empty.
        level = Signal(signed(len(self.address) + 2), init=-1)
        step = Signal.like(level, init=0)
        m.d.comb += step.eq(Mux(chunk.tile_end, Cat(~remaining, 1).as_signed(), -1))
        with m.If(self.request.valid & row_end):
            with m.If(chunk.tile_end):
                m.d.sync += [pointer.eq(pointer + remaining + 1), remaining.eq(rows - 1)]
            with m.Else():
                m.d.sync += [pointer.eq(pointer + 1), remaining.eq(remaining - 1)]
        # Both sums at once: only the choice waits for the request. One carry chain adds both terms:
        # the carry into it is the row that was written.
        moved, kept = (
            (Cat(1, level) + Cat(self.row_written, by))[1:] for by in (step, Const(0, len(step)))
        )
        m.d.sync += level.eq(Mux(self.request.valid & row_end, moved, kept))
        m.d.comb += self.address.eq(pipeline(m, pointer, self.read_delay, "address"))
        return ~level[-1]
