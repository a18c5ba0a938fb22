"""The reorder buffer, whose chunks leave in the order of their requests; and a FIFO of tiles."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

__all__ = ["Completion", "PendingTile", "PendingTiles", "ReorderBuffer"]

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


class Completion(data.StructLayout):
    """A completed chunk: a value for each lane, and its `ChunkMeta`."""

    def __init__(self, *, chunk, acc, lanes):
        super().__init__({"sums": data.ArrayLayout(acc, lanes), "meta": chunk["meta"].shape})


class ReorderBuffer(wiring.Component):
    """A ring of ``depth`` chunks: a request allocates an entry, its values are written later.

    The values of a chunk are its sums, ``sum_latency`` cycles after the request, or its results
    from the epilogue, ``epilogue_latency`` cycles after it. Values are written in the order of the
    requests: the result scheduler spaces its requests for that. A chunk can be popped as soon as
    it is written and all chunks before it are popped. A request cannot be refused: the result
    scheduler counts the free entries.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    acc : shape
    lanes, depth : int
        ``depth`` is a power of two.
    sum_latency : int
        Cycles from a request to its sums.
    epilogue_latency : int
        Cycles from a request to its results; 0 without an epilogue.
    output_latency : int
        Cycles from the write of a chunk to its being valid at the output. 0: the values bypass the
        memory. 1: as 0, with a register at the output. 2: the values are in block RAM.

    Attributes
    ----------
    request : In, ``valid`` and a ``chunk``
        Allocates an entry.
    sums : In, ``lanes`` values
        Corrected sums; ``sum_latency`` cycles after a request without epilogue.
    results : In, ``lanes`` values
        Results of the epilogue; ``epilogue_latency`` cycles after a request that uses it.
    o : Out, stream of `Completion`
    """

    def __init__(
        self, *, chunk, acc, lanes, depth, sum_latency, epilogue_latency, output_latency
    ):
        self.depth = depth
        self.sum_latency = sum_latency
        self.epilogue_latency = epilogue_latency
        self.output_latency = output_latency
        self.Completion = Completion(chunk=chunk, acc=acc, lanes=lanes)
        values = data.ArrayLayout(acc, lanes)
        super().__init__({
            "request": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(values),
            "results": In(values),
            "o": Out(stream.Signature(self.Completion)),
        })

    def elaborate(self, platform):
        m = Module()
        write, values = self._arrivals(m)
        o = stream.Signature(self.Completion).create()
        if self.output_latency == 1:
            m.d.comb += o.ready.eq(~self.o.valid | self.o.ready)
            with m.If(o.ready):
                m.d.sync += [self.o.valid.eq(o.valid), self.o.payload.eq(o.payload)]
        else:
            connect(m, o, flipped(self.o))
        self._entries(m, o, write, values)
        return m

    def _arrivals(self, m):
        """Whether the values of a chunk arrive in this cycle; these values."""
        # Shift registers of the requests in flight.
        uses_epilogue = self.request.chunk.uses_epilogue
        paths = [(self.sum_latency, self.request.valid & ~uses_epilogue)]
        if self.epilogue_latency:
            paths.append((self.epilogue_latency, self.request.valid & uses_epilogue))
        next_write = []
        for latency, valid in paths:
            for _ in range(latency - 1):
                stage = Signal(name="in_flight")
                m.d.sync += stage.eq(valid)
                valid = stage
            next_write.append(valid)
        write, values = Signal(), self.sums.as_value()
        m.d.sync += write.eq(Cat(next_write).any())
        if self.epilogue_latency:
            from_epilogue = Signal()
            m.d.sync += from_epilogue.eq(next_write[1])
            values = Mux(from_epilogue, self.results.as_value(), values)
        return write, values

    def _entries(self, m, o, write, values):
        """The entries, from their allocation and write to the stream ``o`` that pops them."""
        width = ceil_log2(self.depth)
        # One bit more than an index, so that a full ring differs from an empty one.
        allocate_index, write_index, pop_index = (
            Signal(width + 1, name=f"{name}_index") for name in ("allocate", "write", "pop")
        )
        full = (allocate_index ^ pop_index) == self.depth
        level = Signal(signed(width + 1), init=-1)  # entries written and not popped, minus one
        empty = level[-1]
        pop = o.valid & o.ready
        block_ram = self.output_latency == 2
        attrs = {"ram_block": 1, "no_rw_check": 1} if block_ram else {}
        meta_memory, value_memory = (
            Memory(shape=shape, depth=self.depth, init=[], attrs=attrs)
            for shape in (o.payload.meta.shape(), len(values))
        )
        m.submodules += [meta_memory, value_memory]
        # ``request.valid`` comes late: a free entry is written without it, too.
        for memory, en, step, index, value in (
            (meta_memory, ~full, self.request.valid, allocate_index, self.request.chunk.meta),
            (value_memory, write, write, write_index, values),
        ):
            port = memory.write_port()
            m.d.comb += [port.en.eq(en), port.addr.eq(index), port.data.eq(value)]
            with m.If(step):
                m.d.sync += index.eq(index + 1)
        domain = "sync" if block_ram else "comb"
        meta, stored = (
            memory.read_port(domain=domain) for memory in (meta_memory, value_memory)
        )
        m.d.comb += [o.payload.meta.eq(meta.data), stored.addr.eq(meta.addr)]
        if block_ram:  # reads the next entry ahead; a write counts once it can be read
            readable = Signal()
            m.d.sync += readable.eq(write)
            m.d.comb += [
                meta.addr.eq(pop_index + pop),
                o.valid.eq(~empty),
                o.payload.sums.as_value().eq(stored.data),
            ]
            write = readable
        else:
            m.d.comb += [
                meta.addr.eq(pop_index),
                o.valid.eq(~empty | write),
                o.payload.sums.as_value().eq(Mux(empty, values, stored.data)),
            ]
        # ``pop`` comes late: it selects one of two levels, each the sum of one carry chain.
        # ``- ~write`` is ``+ write - 1``.
        m.d.sync += level.eq(Mux(pop, level - ~write, level + write))
        with m.If(pop):
            m.d.sync += pop_index.eq(pop_index + 1)
