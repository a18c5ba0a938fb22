"""The collector: reads finished tiles out of the result buffer, chunk by chunk, in job order."""

from amaranth.hdl import Array, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Chunk", "Collector"]


class Chunk(data.StructLayout):
    """Up to ``lanes`` neighbouring results of a row, and the last pages read for them.

    A chunk with a ``status`` holds no results; a ``silent`` one is not even sent: it only ends its
    job.
    """

    def __init__(self, *, acc, lanes, tile, cols):
        super().__init__({
            "sums": data.ArrayLayout(acc, lanes),
            "row": tile["rows"].shape,
            "chunk": range(-(-cols // lanes)),
            "a_page": tile["a_page"].shape,
            "b_page": tile["b_page"].shape,
            "panel": tile["b_page"].shape,  # the first page of B's
            "finish": tile["finish"].shape,
            "last": 1,
            "silent": 1,
            "status": tile["status"].shape,
            "tag": 16,
        })


class Collector(wiring.Component):
    """``for row in rows of the tile: for chunk in chunks of the row``, a chunk a cycle.

    A row is read as soon as it is in the buffer; its chunks leave one cycle after they are read. A
    pass's room is released with its last read.

    Parameters
    ----------
    announced : shape
        What the sequencer says of a tile.
    acc : shape
        Of a sum.
    rows, cols, lanes, slots : int
    written : int
        Width of the count of rows written; buffer rows are its lower bits but two.

    Attributes
    ----------
    tiles : In, stream of ``announced``
    written : In
    read, address : Out, row : In
        The result buffer's read port.
    chunks : Out, stream of `Chunk`
    release : Out
        Pulse: a pass has left the buffer.
    """

    def __init__(self, *, announced, acc, rows, cols, lanes, slots, written):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.slots = slots
        self.Chunk = Chunk(acc=acc, lanes=lanes, tile=announced["tile"].shape, cols=cols)
        super().__init__({
            "tiles": In(stream.Signature(announced)),
            "written": In(written),
            "read": Out(1),
            "address": Out(written - 2),
            "row": In(data.ArrayLayout(acc, cols)),
            "chunks": Out(stream.Signature(self.Chunk)),
            "release": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        shift = ceil_log2(self.lanes)
        here = self.tiles.payload
        tile = here.tile
        row = Signal(tile.rows.shape())
        chunk = Signal(range(-(-self.cols // self.lanes)))
        base = Signal(len(self.written))

        # Which chunk is next, and whether it is there.
        void = tile.status != 0
        silent = tile.keep & ~void
        place = Signal(len(self.written))
        ahead = Signal(signed(len(self.written)))
        m.d.comb += [
            place.eq(base + row * self.slots + here.slot),
            ahead.eq(self.written - place),
            self.address.eq(place),
        ]
        row_end = chunk == (tile.cols - 1) >> shift
        tile_end = void | silent | (row_end & (row == tile.rows - 1))

        out = self.chunks.payload
        free = ~self.chunks.valid | self.chunks.ready
        go = self.tiles.valid & free & (void | silent | (ahead > 0))
        held = Signal(self.Chunk)
        m.d.comb += [
            self.read.eq(go & ~void & ~silent),
            self.tiles.ready.eq(go & tile_end),
            self.release.eq(self.read & tile_end & here.end),
        ]
        with m.If(free):
            m.d.sync += self.chunks.valid.eq(go)
        with m.If(go):
            m.d.sync += [
                held.row.eq(row),
                held.chunk.eq(chunk),
                held.a_page.eq(here.a_page),
                held.b_page.eq(here.b_page),
                held.panel.eq(tile.b_page),
                held.finish.eq(tile.finish),
                held.last.eq(tile_end & tile.last),
                held.silent.eq(silent),
                held.status.eq(tile.status),
                held.tag.eq(tile.tag),
            ]
            with m.If(tile_end):
                m.d.sync += [row.eq(0), chunk.eq(0)]
            with m.Elif(row_end):
                m.d.sync += [row.eq(row + 1), chunk.eq(0)]
            with m.Else():
                m.d.sync += chunk.eq(chunk + 1)
        with m.If(self.release):
            m.d.sync += base.eq(base + self.rows * self.slots)

        m.d.comb += out.eq(held)
        for lane in range(self.lanes):
            sums = Array(self.row[c] for c in range(lane, self.cols, self.lanes))
            if len(sums):
                m.d.comb += out.sums[lane].eq(sums[held.chunk])
        return m
