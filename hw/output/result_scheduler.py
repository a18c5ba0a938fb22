"""The result scheduler: requests the results of finished tiles, chunk by chunk, in job order."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline

__all__ = ["Chunk", "ChunkMeta", "ResultScheduler"]


class ChunkMeta(data.StructLayout):
    """The properties of a chunk that the stream packer needs.

    ============ ==================================================================================
    ``last``     the chunk is the last one of its job
    ``suppress`` the chunk is not sent: it only ends its job
    ``narrow``   the results are narrow
    ``status``   the status of the job; if it is not 0 the chunk has no results
    ``tag``      the tag of the job
    ============ ==================================================================================
    """

    def __init__(self, *, tile):
        super().__init__({
            "last": 1, "suppress": 1, "narrow": 1,
            **{name: tile[name].shape for name in ("status", "tag")},
        })


class Chunk(data.StructLayout):
    """A request for up to ``lanes`` neighbouring results of a row.

    ================= =============================================================================
    ``row``           the row of the tile
    ``index``         the position of the chunk in the row
    ``a_page``        the last page of A that the sums were computed from
    ``b_page``        the last page of B that the sums were computed from
    ``b_panel``       the first page of B that the tile was computed from
    ``epilogue``      a bit for each operation of the epilogue that the job asks for
    ``uses_epilogue`` the results come from the epilogue
    ``meta``          `ChunkMeta`
    ================= =============================================================================
    """

    def __init__(self, *, lanes, tile, cols):
        super().__init__({
            "row": tile["rows"].shape,
            "index": range(-(-cols // lanes)),
            "a_page": tile["a_page"].shape,
            "b_page": tile["b_page"].shape,
            "b_panel": tile["b_page"].shape,
            "epilogue": tile["epilogue"].shape,
            "uses_epilogue": 1,
            "meta": ChunkMeta(tile=tile),
        })


class ResultScheduler(wiring.Component):
    """``for row in rows of the tile: for chunk in chunks of the row``, one chunk a cycle.

    A chunk is requested as soon as its row is in the result buffer and the reorder buffer has a
    free entry. So nothing in the result path ever stalls. The request of the last chunk of a pass
    releases the room of the pass. Requests that use the epilogue are at least ``interval`` cycles
    apart. A request that does not use it follows such a request by more than ``epilogue_lag``
    cycles, since its sums arrive ``epilogue_lag`` cycles sooner. Within these cycles, requests for
    a serial epilogue are multiples of ``interval`` cycles apart.

    Parameters
    ----------
    tile : shape
        `weft.hw.output.reorder_buffer.PendingTile`.
    rows, cols, lanes, slots : int
    buffer_rows : int
        Depth of the result buffer in rows; a power of two.
    epilogue_flags : sequence of str
        Members of a tile's ``epilogue``. A chunk uses the epilogue if any of them is set.
    reorder_depth : int
        Entries of the reorder buffer.
    interval : int
        Cycles between two requests that use the epilogue.
    epilogue_lag : int
        Cycles by which results of the epilogue arrive later than sums; of a serial epilogue, its
        latency.
    serial_epilogue : bool
        Requires an ``interval`` that is a power of two.
    read_delay : int
        Cycles from a request to its read of the result buffer.

    Attributes
    ----------
    tiles : In, stream of ``tile``
    row_written : In, 1 bit
        Pulse: the result buffer has one more row, readable from the next cycle on.
    address : Out, address of a row in the result buffer
        ``read_delay`` cycles after the request.
    index : Out, position of a chunk in its row
        ``read_delay`` cycles after the request.
    request : Out, ``valid`` and a `Chunk`
        The chunk that is requested in this cycle.
    popped : In, 1 bit
        Pulse: an entry of the reorder buffer is free again.
    release : Out, 1 bit
        Pulse: all results of a pass have been requested.
    """

    def __init__(
        self, *, tile, rows, cols, lanes, slots, buffer_rows, epilogue_flags, reorder_depth,
        interval, epilogue_lag, serial_epilogue=False, read_delay=0,
    ):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.slots = slots
        self.epilogue_flags = epilogue_flags
        self.reorder_depth = reorder_depth
        self.interval = interval
        self.epilogue_lag = epilogue_lag
        self.serial_epilogue = serial_epilogue
        self.read_delay = read_delay
        self.Chunk = Chunk(lanes=lanes, tile=tile["tile"].shape, cols=cols)
        super().__init__({
            "tiles": In(stream.Signature(tile)),
            "row_written": In(1),
            "address": Out(ceil_log2(buffer_rows)),
            "index": Out(self.Chunk["index"].shape),
            "request": Out(data.StructLayout({"valid": 1, "chunk": self.Chunk})),
            "popped": In(1),
            "release": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        pending, tile = self.tiles.payload, self.tiles.payload.tile
        fire, chunk = self.request.valid, self.request.chunk
        row_end, tile_end = self._position(m)
        nonempty = self._read_pointer(m, row_end, tile_end)
        m.d.comb += [
            fire.eq(self.tiles.valid & self._allowed(m) & (pending.no_data | nonempty)),
            self.index.eq(pipeline(m, chunk.index, self.read_delay, "index")),
            self.tiles.ready.eq(fire & tile_end),
            self.release.eq(fire & ~pending.no_data & tile_end & pending.end),
            chunk.a_page.eq(pending.a_page),
            chunk.b_page.eq(pending.b_page),
            chunk.b_panel.eq(tile.b_page),
            chunk.epilogue.eq(tile.epilogue),
            chunk.uses_epilogue.eq(Cat(tile.epilogue[name] for name in self.epilogue_flags).any()),
            chunk.meta.last.eq(tile_end & tile.last),
            chunk.meta.suppress.eq(pending.suppress),
            chunk.meta.narrow.eq(tile.epilogue.as_value()[:1]),
            chunk.meta.status.eq(tile.status),
            chunk.meta.tag.eq(tile.tag),
        ]
        return m

    def _position(self, m):
        """Row and index of the next chunk; whether it is the last of its row, and of its tile."""
        pending, tile = self.tiles.payload, self.tiles.payload.tile
        fire, chunk = self.request.valid, self.request.chunk
        row, index = Signal.like(chunk.row), Signal.like(chunk.index)
        row_ahead = Signal(range(self.rows + 2), init=2)  # two rows after this one
        index_ahead = Signal(range(-(-self.cols // self.lanes) + 2), init=2)  # the same
        next_row_is_last = row_ahead == tile.rows
        chunks = (tile.cols + self.lanes - 1) >> ceil_log2(self.lanes)
        # The ``last`` flags are registered with the chunk before. The first chunk of a row or of a
        # tile takes the flags of the tile instead.
        first_in_tile, in_first_row, first_in_row = (
            Signal(init=1, name=name) for name in ("first_in_tile", "in_first_row", "first_in_row")
        )
        last_in_tile, in_last_row, last_in_row = Signal(), Signal(), Signal()
        row_end = Mux(first_in_row, pending.single_chunk, last_in_row)
        tile_end = Mux(first_in_tile, pending.single_request, last_in_tile)
        m.d.comb += [chunk.row.eq(row), chunk.index.eq(index)]
        with m.If(fire):
            m.d.sync += [
                index.eq(index + 1), index_ahead.eq(index_ahead + 1),
                first_in_row.eq(0), last_in_row.eq(index_ahead == chunks), first_in_tile.eq(0),
                last_in_tile.eq(
                    (index_ahead == chunks) & Mux(in_first_row, pending.single_row, in_last_row)
                ),
            ]
            with m.If(tile_end | row_end):
                m.d.sync += [
                    index.eq(0), index_ahead.eq(2), first_in_row.eq(1),
                    row.eq(row + 1), row_ahead.eq(row_ahead + 1),
                    in_first_row.eq(0), in_last_row.eq(next_row_is_last),
                    last_in_tile.eq(next_row_is_last & pending.single_chunk),
                ]
            with m.If(tile_end):
                m.d.sync += [row.eq(0), row_ahead.eq(2), in_first_row.eq(1), first_in_tile.eq(1)]
        return row_end, tile_end

    def _read_pointer(self, m, row_end, tile_end):
        """The address of the next row; whether that row is in the result buffer."""
        pending = self.tiles.payload
        pass_rows = self.rows * self.slots
        row_taken = self.request.valid & ~pending.no_data & row_end
        pass_end = tile_end & pending.end
        # The next row, and the first row of the next pass.
        pointer = Signal(len(self.address))
        pass_pointer = Signal.like(pointer, init=pass_rows % (1 << len(pointer)))
        # The rows in the buffer, minus one, counted from `pointer` and from `pass_pointer`.
        # A level below 0 means that this row is not in the buffer yet.
        level = Signal(signed(len(self.address) + 2), init=-1)
        pass_level = Signal.like(level, init=-1 - pass_rows)
        # The next tile starts so many rows before the next pass.
        back = Mux(pending.end, 0, pass_rows - 1 - pending.slot) if self.slots > 1 else C(0, 1)
        m.d.comb += self.address.eq(pipeline(m, pointer, self.read_delay, "address"))
        with m.If(row_taken):
            # No multiplexer: the low bits of ``pass_pointer`` are constants, so synthesis would
            # make a reset of it, behind ``row_taken``.
            ends = tile_end.replicate(len(pointer))
            m.d.sync += pointer.eq(
                ((pass_pointer - back) & ends) | ((pointer + self.slots) & ~ends)
            )
            with m.If(pass_end):
                m.d.sync += pass_pointer.eq(pass_pointer + pass_rows)

        def moved(level, rows):
            """``level + rows``, and the row that was written: the carry into one chain."""
            return (Cat(1, level).as_signed() + Cat(self.row_written, rows).as_signed())[1:]

        # ``row_taken`` comes last: it selects one of two sums.
        next_row = moved(level, C(-self.slots, signed(len(level))))
        next_tile = moved(pass_level, Cat(back, C(0, 1)))
        next_pass = moved(pass_level, C(-pass_rows, signed(len(level))))
        same, same_pass = level + self.row_written, pass_level + self.row_written
        m.d.sync += [
            level.eq(Mux(row_taken, Mux(tile_end, next_tile, next_row), same)),
            pass_level.eq(Mux(row_taken, Mux(pass_end, next_pass, same_pass), same_pass)),
        ]
        return ~level[-1]

    def _allowed(self, m):
        """Whether the reorder buffer has a free entry and the interval has passed."""
        fire, uses_epilogue = self.request.valid, self.request.chunk.uses_epilogue
        # Counters that are active while below 0, so that one bit tells.
        width = ceil_log2(self.reorder_depth + 1) + 1
        in_flight = Signal(signed(width), init=-self.reorder_depth)  # minus the depth
        popped = Signal()
        m.d.sync += [popped.eq(self.popped), in_flight.eq(in_flight + fire - popped)]
        if not self.epilogue_flags:
            return in_flight[-1]
        lag_passed = self._passed(m, self.epilogue_lag, fire & uses_epilogue)
        if self.serial_epilogue:
            phase = Signal(range(self.interval))
            in_phase = Signal(init=1)  # ``phase == 0``, registered
            m.d.sync += phase.eq(Mux(fire & uses_epilogue, 1, phase + 1))
            m.d.sync += in_phase.eq((phase == self.interval - 1) & ~(fire & uses_epilogue))
            interval_passed = lag_passed | in_phase
        else:
            interval_passed = self._passed(m, self.interval - 1, fire & uses_epilogue)
        return in_flight[-1] & Mux(uses_epilogue, interval_passed, lag_passed)

    @staticmethod
    def _passed(m, cycles, start):
        """Whether ``cycles`` cycles have passed since ``start``."""
        remaining = Signal(signed(ceil_log2(cycles + 1) + 1), init=-1)
        with m.If(start):
            m.d.sync += remaining.eq(cycles - 1)
        with m.Elif(~remaining[-1]):
            m.d.sync += remaining.eq(remaining - 1)
        return remaining[-1]
