"""The output section: from announced tiles and their sums to a map in the memory.

`ChunkScheduler` requests the results of tiles, chunk by chunk. `AddedMap` is the part for ADD, a
job that adds a second map to its results.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import (
    LineRead,
    ReadPort,
    ResultRead,
    TableRead,
    job_ports,
)
from weft.hw.network_core.layouts import ComputedTile, MapChunk, VectorAddress, is_of_unit
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.lstm import Lstm
from weft.hw.network_core.output.map_store import ChunkAddresses, MapStore
from weft.hw.network_core.output.rescaler import Rescaler
from weft.hw.network_core.output.softmax import Softmax
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core import latencies
from weft.network_core.latencies import is_spread, lead

__all__ = ["AddedMap", "ChunkGenerator", "ChunkScheduler", "OutputSection"]


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
            self.config, depth=self.buffer_rows // self.config.array.rows
        )
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
        rows, chunk = self.config.array.rows, self.request.chunk
        pointer = Signal(len(self.address))
        remaining = Signal(range(rows), init=rows - 1)  # rows of the tile after this one
        # Rows in the buffer from the pointer on, minus one: below 0 while the buffer is empty.
        level = Signal(signed(len(self.address) + 2), init=-1)
        step = Signal.like(level, init=0)
        m.d.comb += step.eq(Mux(chunk.tile_end, Cat(~remaining, 1).as_signed(), -1))
        with m.If(self.request.valid & chunk.row_end):
            with m.If(chunk.tile_end):
                m.d.sync += [pointer.eq(pointer + remaining + 1), remaining.eq(rows - 1)]
            with m.Else():
                m.d.sync += [pointer.eq(pointer + 1), remaining.eq(remaining - 1)]
        # Both sums at once: only the choice waits for the request. One carry chain adds both terms:
        # the carry into it is the row that was written.
        moved, kept = (
            (Cat(1, level) + Cat(self.row_written, by))[1:] for by in (step, Const(0, len(step)))
        )
        m.d.sync += level.eq(Mux(self.request.valid & chunk.row_end, moved, kept))
        m.d.comb += self.address.eq(pipeline(m, pointer, self.read_delay, "address"))
        return ~level[-1]


class AddedMap(wiring.Component):
    """Reads the added map: for each chunk of the results, the bytes at the same place of that map.

    It reads the vector of each chunk through the side port, the memory's port for reads that the
    array does not use, and keeps the bytes of the chunk. Reads are bounded: a chunk is accepted
    while there is space for its bytes. A read beyond the window does not happen: the values of its
    chunk never come, and the job waits for them until a reset.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    chunks : In, stream of `weft.hw.network_core.layouts.MapChunk`
    reads : Out, `weft.hw.network_core.interface.ReadPort`
        The first vector of the data is used.
    added : Out, stream of ``lanes`` int8
        The values of the chunks.
    claim : In, 1 bit
        A chunk is requested, which takes the next values later; only while ``ready`` is 1.
    ready : Out, 1 bit
        Values have arrived that no request has claimed.
    address_error : Out, 1 bit
        Pulse: a read beyond the window.
    """

    def __init__(self, config):
        self.config = config
        self.space = latencies.added_chunks(config)
        super().__init__({
            **job_ports(config),
            "chunks": In(stream.Signature(MapChunk(config))),
            "reads": Out(ReadPort(config)),
            "added": Out(stream.Signature(data.ArrayLayout(signed(8), config.array.lanes))),
            "claim": In(1),
            "ready": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        # A chunk is accepted, its vector is read, its values arrive, a request claims them, and the
        # scalers take them. ``level`` counts chunks from their acceptance to the scalers,
        # ``arrived`` in `_values` those whose values have arrived and are not claimed.
        level = Signal(range(self.space + 1))
        full, accept, take = Signal(), Signal(), Signal()
        m.submodules.addresses = addresses = ChunkAddresses(self.config)
        job, request, read = self.job.fields, self.reads.request, addresses.o
        connect(m, flipped(self.window), addresses.window)
        chunks = self.chunks
        if is_spread(self.config):
            # The scheduler, which decides on a chunk, and the arbiter of the reads, which decides
            # on an address, lie far from each other.
            m.submodules.skid = skid = SkidBuffer(MapChunk(self.config))
            connect(m, flipped(self.chunks), skid.i)
            chunks = skid.o
        m.d.comb += [
            addresses.start.eq(self.job.start),
            addresses.first.eq(job.add_input),
            addresses.pixel_step.eq(job.add_pixel_step),
            addresses.row_step.eq(job.add_row_step),
            addresses.width.eq(job.out_width),
            addresses.en.eq(~request.valid | request.ready),
            addresses.i.valid.eq(accept),
            addresses.i.chunk.eq(chunks.payload),
            full.eq(level == self.space),
            chunks.ready.eq(addresses.en & ~full),
            accept.eq(chunks.valid & chunks.ready),
            take.eq(self.added.valid & self.added.ready),
            request.valid.eq(read.in_range),
            request.payload.eq(read.address),
            self.address_error.eq(read.valid & ~read.in_range),
        ]
        m.d.sync += level.eq(level + accept - take)
        self._values(m, read.part)
        return m

    def _values(self, m, part):
        """Keeps the bytes of each chunk that arrives."""
        reads, chunk = self.reads, Signal(len(self.added.payload.as_value()))
        # ``part`` tells which chunk of its vector it is, and has no bits if a vector is one chunk.
        # The FIFO has the parts of the chunks whose data have not arrived.
        if len(part):
            m.submodules.parts = parts = SyncFIFOBuffered(width=len(part), depth=self.space)
            m.d.comb += [
                parts.w_en.eq(reads.request.valid & reads.request.ready),
                parts.w_data.eq(part),
                parts.r_en.eq(reads.data_valid),
                chunk.eq(reads.data[0].word_select(parts.r_data, len(chunk))),
            ]
        else:
            m.d.comb += chunk.eq(reads.data[0])
        m.submodules.values = values = SyncFIFOBuffered(width=len(chunk), depth=self.space)
        arrived = Signal(range(self.space + 1))  # and not claimed
        m.d.sync += arrived.eq(arrived + reads.data_valid - self.claim)
        m.d.comb += [
            values.w_en.eq(reads.data_valid),
            values.w_data.eq(chunk),
            values.r_en.eq(self.added.ready),
            self.added.valid.eq(values.r_rdy),
            self.added.payload.eq(values.r_data),
            self.ready.eq(arrived != 0),
        ]


class OutputSection(wiring.Component):
    """A `ChunkScheduler`, a `Rescaler`, a `MapStore`, and an `AddedMap` for ADD.

    With the option ``softmax`` also a `Softmax`, and with ``lstm`` an `Lstm`. A job with one of
    these flags has no tiles.

    Parameters
    ----------
    config : NetworkCoreConfig
    buffer_rows : int
        Depth of the result buffer in rows; a power of two.

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
        It starts when the job before is done, and is stable to ``done``.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    tiles : In, `weft.hw.network_core.layouts.ComputedTile`
    rows : Out, `weft.hw.network_core.interface.ResultRead`
    release : Out, 1 bit
        Pulse: ``rows`` rows of the result buffer are free again.
    lines : Out, `weft.hw.network_core.interface.LineRead`
    table : Out, `weft.hw.network_core.interface.TableRead`
    reads : Out, `weft.hw.network_core.interface.ReadPort`
        Reads of the added map.
    unit_reads : Out, `weft.hw.network_core.interface.ReadPort`; only with ``softmax`` or ``lstm``
        Reads of jobs with one of these flags.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    ending : Out, 1 bit; only if `weft.network_core.latencies.lead` is above 0
        Pulse, that many cycles before ``done``: the next job may start. With ``done`` if the job
        has the flag ``softmax`` or ``lstm``.
    frontier : Out, `weft.hw.network_core.layouts.VectorAddress`; only with the option ``early``
        As of `weft.hw.network_core.output.map_store.MapStore`.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window, which does not happen. If it was a read of the added
        map, or of a job with ``softmax`` or ``lstm``, the job waits until a reset.
    """

    def __init__(self, config, *, buffer_rows):
        self.config = config
        self.buffer_rows = buffer_rows
        super().__init__({
            **job_ports(config),
            "tiles": In(ComputedTile(config)),
            "rows": Out(ResultRead(config, buffer_rows)),
            "release": Out(1),
            "lines": Out(LineRead(config)),
            "table": Out(TableRead(config)),
            "reads": Out(ReadPort(config)),
            **({"unit_reads": Out(ReadPort(config))} if config.has_units else {}),
            "write": Out(MemoryWrite(config)),
            **({"ending": Out(1)} if lead(config) else {}),
            **({"frontier": Out(VectorAddress(config))} if config.early else {}),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.scheduler = scheduler = ChunkScheduler(
            self.config, buffer_rows=self.buffer_rows
        )
        m.submodules.rescaler = rescaler = Rescaler(self.config)
        m.submodules.added = added = AddedMap(self.config)
        m.submodules.store = store = MapStore(self.config)
        connect(m, scheduler.added, added.chunks)
        connect(m, added.added, rescaler.added)
        connect(m, flipped(self.reads), added.reads)
        connect(m, flipped(self.job), rescaler.job, added.job, store.job)
        connect(m, flipped(self.window), added.window, store.window)
        connect(m, rescaler.lines, flipped(self.lines))
        connect(m, rescaler.table, flipped(self.table))
        rows = self.rows
        m.d.comb += [
            scheduler.add.eq(self.job.fields.add),
            scheduler.tiles.eq(self.tiles),
            scheduler.row_written.eq(rows.row_written),
            scheduler.added_ready.eq(added.ready),
            scheduler.ready.eq(rescaler.ready),
            rows.address.eq(scheduler.address),
            rows.index.eq(scheduler.index),
            self.release.eq(scheduler.release),
            added.claim.eq(scheduler.request.valid & self.job.fields.add),
            rescaler.request.eq(scheduler.request),
            rescaler.sums.eq(rows.sums),
            rescaler.pair_sum.eq(rows.pair_sum),
            store.request.eq(scheduler.request),
            # The store takes either results or, of a job with SUMS, biased sums. Signals with
            # ``next`` announce them a cycle earlier.
            store.results.eq(rescaler.results),
            store.results_next.eq(rescaler.results_next),
            store.sums.eq(rescaler.biased),
            store.sums_next.eq(rescaler.biased_next),
            self.write.eq(store.write),
            self.done.eq(store.done),
            self.address_error.eq(store.address_error | added.address_error),
        ]
        if lead(self.config):
            m.d.comb += self.ending.eq(store.ending)
        if self.config.early:
            fields = self.job.fields
            tiles = ~fields.partial & ~is_of_unit(self.config, fields)
            m.d.comb += [
                scheduler.start.eq(self.job.start & tiles), self.frontier.eq(store.frontier),
            ]
        if self.config.has_units:
            self._units(m, rescaler)
        return m

    def _units(self, m, rescaler):
        """Add a `Softmax` and an `Lstm`: one that is busy has the outputs of the other blocks."""
        units = []
        if self.config.softmax:
            m.submodules.softmax = softmax = Softmax(self.config)
            units.append((softmax, softmax.exponential, softmax.difference))
        if self.config.lstm:
            m.submodules.lstm = lstm = Lstm(self.config)
            units.append((lstm, lstm.word, lstm.place))
        for unit, word, place in units:
            connect(m, flipped(self.job), unit.job)
            connect(m, flipped(self.window), unit.window)
            if len(units) == 1:
                connect(m, unit.scale, rescaler.scale)
                connect(m, unit.reads, flipped(self.unit_reads))
            m.d.comb += word.eq(self.table.data[0])
            with m.If(unit.busy):
                m.d.comb += [
                    self.table.address[0].eq(place),
                    self.write.eq(unit.write),
                    self.done.eq(unit.done), self.address_error.eq(unit.address_error),
                ]
                if lead(self.config):
                    # The next job may start in the cycle of ``done``, which is soon enough.
                    m.d.comb += self.ending.eq(unit.done)
        if len(units) > 1:
            self._share(m, [unit for unit, _, _ in units], rescaler.scale)

    def _share(self, m, units, scale):
        """Give the reads, and the ports of the scaler, to the unit that is busy."""
        reads = self.unit_reads
        for unit in units:
            m.d.comb += [
                unit.scale.y.eq(scale.y), unit.reads.data.eq(reads.data),
                unit.reads.data_valid.eq(reads.data_valid),
                unit.reads.request.ready.eq(reads.request.ready),
            ]
            with m.If(unit.busy):
                m.d.comb += [
                    reads.request.payload.eq(unit.reads.request.payload),
                    scale.acc.eq(unit.scale.acc), scale.multiplier.eq(unit.scale.multiplier),
                    scale.shift.eq(unit.scale.shift), scale.start.eq(unit.scale.start),
                ]
        requests = (unit.reads.request.valid for unit in units)
        m.d.comb += reads.request.valid.eq(reduce(or_, requests))
