"""The chunk generator: the chunks of announced tiles, row by row."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.network_core.layouts import ComputedTile, MapChunk

__all__ = ["ChunkGenerator"]


class ChunkGenerator(wiring.Component):
    """``for row in rows of the tile: for chunk in chunks of the row``, one chunk a cycle.

    An announcement cannot be refused: ``depth`` covers all tiles in flight.

    Parameters
    ----------
    config : NetworkCoreConfig
    depth : int
        Tiles that wait for their chunks.

    Attributes
    ----------
    tiles : In, `weft.hw.network_core.layouts.ComputedTile`
    chunks : Out, stream of `weft.hw.network_core.layouts.MapChunk`
    """

    def __init__(self, config, *, depth):
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
        m.d.comb += [
            self.chunks.valid.eq(fifo.r_rdy),
            chunk.index.eq(index),
            chunk.line.eq(tile.line + index),
            # Verilator reports a comparison that is always true.
            chunk.row_end.eq(index == tile.index_last if len(index) else 1),
            chunk.lane_last.eq(Mux(chunk.row_end, tile.lane_last, self.lanes - 1)),
            chunk.tile_end.eq(chunk.row_end & (row == tile.row_last if len(row) else 1)),
            chunk.panel_end.eq(chunk.tile_end & tile.tile_last),
            chunk.last.eq(chunk.tile_end & tile.last),
            fifo.r_en.eq(self.chunks.ready & chunk.tile_end),
        ]
        with m.If(self.chunks.valid & self.chunks.ready):
            m.d.sync += index.eq(Mux(chunk.row_end, 0, index + 1))
            with m.If(chunk.row_end):
                m.d.sync += row.eq(Mux(chunk.tile_end, 0, row + 1))
        return m
