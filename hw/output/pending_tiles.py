"""A FIFO of tiles whose results have not left the result buffer yet."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

__all__ = ["PendingTile", "PendingTiles"]


class PendingTile(data.StructLayout):
    """A tile as the result path sees it, with flags that are decoded before the FIFO.

    ===================== =========================================================================
    ``tile``              the fields of the tile that the result path reads
    ``slot``, ``end``     the slot of the tile, and whether it is the last tile of its pass
    ``a_page``            the last page of A that its sums were computed from
    ``b_page``            the last page of B that its sums were computed from
    ``single_row``        the tile has one row
    ``single_chunk``      a row of the tile is one chunk
    ``no_data``           the tile has no results: it has failed, or its sums stay in the array
    ``suppress``          nothing is sent for the tile: its sums stay in the array
    ``single_request``    one chunk request completes the tile
    ===================== =========================================================================

    Parameters
    ----------
    results : shape
        `weft.hw.control.sequencer.Sequencer.Results`.
    """

    TILE = "rows", "cols", "a_page", "b_page", "epilogue", "last", "status", "tag"
    PASS = "slot", "end", "a_page", "b_page"
    FLAGS = "single_row", "single_chunk", "no_data", "suppress", "single_request"

    def __init__(self, *, results):
        tile = results["tile"].shape
        super().__init__({
            "tile": data.StructLayout({name: tile[name].shape for name in self.TILE}),
            **{name: results[name].shape for name in self.PASS},
            **dict.fromkeys(self.FLAGS, 1),
        })


class PendingTiles(wiring.Component):
    """Stores each tile that the sequencer announces until its results have been requested.

    An announcement cannot be refused: ``depth`` covers all tiles in flight and all jobs without
    results.

    Parameters
    ----------
    results : shape
        `weft.hw.control.sequencer.Sequencer.Results`.
    cols, lanes : int
    depth : int
        Entries of the FIFO.

    Attributes
    ----------
    results : In, ``results``
        The announced tile; when its ``valid`` is 1.
    tiles : Out, stream of `PendingTile`
        In the order of the announcements.
    """

    def __init__(self, *, results, cols, lanes, depth):
        self.cols = cols
        self.lanes = lanes
        self.depth = depth
        self.Tile = PendingTile(results=results)
        super().__init__({"results": In(results), "tiles": Out(stream.Signature(self.Tile))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=self.Tile.size, depth=self.depth)
        entry, tile = Signal(self.Tile), self.results.tile
        m.d.comb += [
            *(entry.tile[name].eq(tile[name]) for name in self.Tile.TILE),
            *(entry[name].eq(self.results[name]) for name in self.Tile.PASS),
            entry.single_row.eq(tile.rows == 1),
            # Verilator reports a comparison that is always true.
            entry.single_chunk.eq(tile.cols <= self.lanes if self.cols > self.lanes else 1),
            entry.no_data.eq(tile.failed | tile.hold),
            entry.suppress.eq(tile.hold & ~tile.failed),
            entry.single_request.eq(entry.no_data | (entry.single_row & entry.single_chunk)),
            fifo.w_en.eq(self.results.valid),
            fifo.w_data.eq(entry),
            self.tiles.valid.eq(fifo.r_rdy),
            self.tiles.payload.eq(fifo.r_data),
            fifo.r_en.eq(self.tiles.ready),
        ]
        return m
