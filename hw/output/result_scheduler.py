"""The collector: asks for finished tiles out of the result buffer, chunk by chunk, in job order."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Chunk", "ChunkMeta", "ResultScheduler"]


# The chunk that is next is the first, or the last, of its tile; in the first, or last, row; of it.
_FIRST = "first", "first_row", "first_chunk"
_LATE = "late", "late_row", "late_chunk"


class ChunkMeta(data.StructLayout):
    """What the sender is to know of a chunk.

    A chunk with a ``status`` holds no results; a ``silent`` one is not even sent: it only ends its
    job. The results of a ``narrow`` one are.
    """

    def __init__(self, *, tile):
        super().__init__({
            "last": 1, "silent": 1, "narrow": 1,
            **{name: tile[name].shape for name in ("status", "tag")},
        })


class Chunk(data.StructLayout):
    """Up to ``lanes`` neighbouring results of a row that are asked for.

    With it comes what is to be done with them on their way out: whether something ``finishes``
    them, and the last pages that were read for their sums.
    """

    def __init__(self, *, lanes, tile, cols):
        super().__init__({
            "row": tile["rows"].shape,
            "chunk": range(-(-cols // lanes)),
            "a_page": tile["a_page"].shape,
            "b_page": tile["b_page"].shape,
            "panel": tile["b_page"].shape,  # the first page of B's
            "finish": tile["epilogue"].shape,
            "finishes": 1,
            "mark": ChunkMeta(tile=tile),
        })


class ResultScheduler(wiring.Component):
    """``for row in rows of the tile: for chunk in chunks of the row``, a chunk a cycle.

    A row is asked for as soon as it is in the buffer, if there is a place behind the result path
    for the chunk: so nothing on that path ever has to wait. A pass's room is released with its last
    read. Chunks that are to be finished follow each other ``pace`` cycles apart; one that is not
    follows them ``lag`` cycles later, as it takes ``lag - 1`` cycles less.

    Parameters
    ----------
    announced : shape
        What the sequencer says of a tile.
    rows, cols, lanes, slots : int
    depth : int
        Rows of the result buffer, a power of two.
    finishing : tuple of str
        What finishes chunks, each by itself: members of a tile's ``finish``.
    places : int
    pace, lag : int

    Attributes
    ----------
    tiles : In, stream of ``announced``
        With ``one_row`` and ``one_chunk``: whether the tile has but one, or a row of it. It has
        ``none`` to ask for where it is void, or keeps its sums: then it is ``silent``. It is
        ``single`` where it has one row of one chunk, or none.
    landed : In
        Pulse: one more row is in the buffer from the next cycle on.
    address : Out
        Of the row in the result buffer.
    chunks : Out, ``valid`` and a `Chunk`
        Each is on its way in this cycle.
    taken : In
        Pulse: a chunk has left its place.
    release : Out
        Pulse: a pass has left the buffer.
    """

    # What is read of a tile, or gives shapes.
    TILE = "rows", "cols", "a_page", "b_page", "epilogue", "last", "status", "tag"

    def __init__(
        self, *, announced, rows, cols, lanes, slots, depth, finishing, places, pace, lag
    ):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.slots = slots
        self.finishing = finishing
        self.places = places
        self.pace = pace
        self.lag = lag
        self.Chunk = Chunk(lanes=lanes, tile=announced["tile"].shape, cols=cols)
        super().__init__({
            "tiles": In(stream.Signature(announced)),
            "landed": In(1),
            "address": Out(ceil_log2(depth)),
            "chunks": Out(data.StructLayout({"valid": 1, "chunk": self.Chunk})),
            "taken": In(1),
            "release": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        shift = ceil_log2(self.lanes)
        here = self.tiles.payload
        tile = here.tile
        out = self.chunks.chunk
        go = self.chunks.valid
        place = Signal(len(self.address))
        size = self.rows * self.slots
        rest = Signal(range(size), init=size - 1)  # rows of the pass behind it
        ahead = Signal(signed(len(self.address) + 2), init=-1)  # rows there from it on, but for one

        # Which chunk is next, and whether it is there.
        next_row = Signal.like(tile.rows, init=1)
        next_chunk = Signal(range(-(-self.cols // self.lanes) + 1), init=1)
        chunks = (tile.cols + self.lanes - 1) >> shift
        # Whether it is the last one is known a chunk ahead, and of the first one from the tile.
        first, first_row, first_chunk = (Signal(init=1, name=n) for n in _FIRST)
        late, late_row, late_chunk = (Signal(name=n) for n in _LATE)
        row_end = Mux(first_chunk, here.one_chunk, late_chunk)
        tile_end = Mux(first, here.single, late)
        m.d.comb += [
            self.address.eq(place),
            go.eq(self.tiles.valid & self._may(m) & (here.none | ~ahead[-1])),
            self.tiles.ready.eq(go & tile_end),
            self.release.eq(go & ~here.none & tile_end & here.end),
            out.a_page.eq(here.a_page),
            out.b_page.eq(here.b_page),
            out.panel.eq(tile.b_page),
            out.finish.eq(tile.epilogue),
            out.finishes.eq(Cat(tile.epilogue[name] for name in self.finishing).any()),
            out.mark.last.eq(tile_end & tile.last),
            out.mark.silent.eq(here.silent),
            out.mark.narrow.eq(tile.epilogue.as_value()[:1]),
            out.mark.status.eq(tile.status),
            out.mark.tag.eq(tile.tag),
        ]
        row, chunk = Signal.like(out.row), Signal.like(out.chunk)
        m.d.comb += [out.row.eq(row), out.chunk.eq(chunk)]
        with m.If(go):
            m.d.sync += [
                chunk.eq(next_chunk), next_chunk.eq(next_chunk + 1),
                first_chunk.eq(0), late_chunk.eq(next_chunk + 1 == chunks), first.eq(0),
                late.eq((next_chunk + 1 == chunks) & Mux(first_row, here.one_row, late_row)),
            ]
            with m.If(tile_end | row_end):
                m.d.sync += [
                    chunk.eq(0), next_chunk.eq(1), first_chunk.eq(1),
                    row.eq(next_row), next_row.eq(next_row + 1),
                    first_row.eq(0), late_row.eq(next_row + 1 == tile.rows),
                    late.eq((next_row + 1 == tile.rows) & here.one_chunk),
                ]
            with m.If(tile_end):
                m.d.sync += [row.eq(0), next_row.eq(1), first_row.eq(1), first.eq(1)]

        # The next row is one of this tile, of the next pass, or of the next tile of the pass.
        step = Signal.like(ahead, init=0)
        with m.If(go & ~here.none & row_end):
            with m.If(~tile_end):
                m.d.comb += step.eq(-self.slots)
                m.d.sync += [place.eq(place + self.slots), rest.eq(rest - self.slots)]
            with m.Elif(here.end):
                m.d.comb += step.eq(Cat(~rest, 1).as_signed())
                m.d.sync += [place.eq(place + rest + 1), rest.eq(size - 1)]
            if self.slots > 1:
                with m.Else():
                    back = (size - 2 - here.slot) - rest
                    m.d.comb += step.eq(back)
                    m.d.sync += [place.eq(place - back), rest.eq(size - 2 - here.slot)]
        # One chain of carries, into which a row that lands comes as the lowest.
        m.d.sync += ahead.eq((Cat(1, ahead) + Cat(self.landed, step))[1:])
        return m

    def _may(self, m):
        """Whether there is a place for the chunk, and it is its time."""
        go, finishes = self.chunks.valid, self.chunks.chunk.finishes
        # Counters that are there when they are below 0: one bit says so.
        full = Signal(signed(ceil_log2(self.places + 1) + 1), init=-self.places)
        taken = Signal()
        m.d.sync += [taken.eq(self.taken), full.eq(full + go - taken)]
        if not self.finishing:
            return full[-1]
        waits = []
        for cycles in (self.lag, self.pace - 1):
            left = Signal(signed(ceil_log2(cycles + 1) + 1), init=-1)
            with m.If(go & finishes):
                m.d.sync += left.eq(cycles - 1)
            with m.Elif(~left[-1]):
                m.d.sync += left.eq(left - 1)
            waits.append(left[-1])
        return full[-1] & Mux(finishes, waits[1], waits[0])
