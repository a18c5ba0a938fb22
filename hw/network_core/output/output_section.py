"""The output section: from announced tiles and their sums to a map in the memory.

`AddedMap` is its part for ADD, a job that adds a second map to its results.
"""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.network_core.layouts import (
    ColumnParameters,
    ComputedTile,
    JobFields,
    MapChunk,
    VectorAddress,
)
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.chunk_scheduler import ChunkScheduler
from weft.hw.network_core.output.map_store import ChunkAddresses, MapStore
from weft.hw.network_core.output.rescaler import Rescaler
from weft.network_core import latencies
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.latencies import lead

__all__ = ["AddedMap", "OutputSection"]


class AddedMap(wiring.Component):
    """Reads the added map: for each chunk of the results, the bytes at the same place of that map.

    It reads the vector of each chunk through the side port, the memory's port for reads that the
    array does not use, and keeps the bytes of the chunk. Reads are bounded: a chunk is accepted
    while there is space for its bytes. A read beyond ``base`` and ``limit`` does not happen: the
    values of its chunk never come, and the job waits for them until a reset.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.layouts.JobFields`
    start : In, 1 bit
        Pulse: the job starts.
    base, limit : In, word number
        First word and first word beyond the range that the job may use, in all banks.
    chunks : In, stream of `weft.hw.network_core.layouts.MapChunk`
    reads : Out, stream of `weft.hw.network_core.layouts.VectorAddress`
    read_valid : In, 1 bit
        The data of a read, in the order of the reads.
    read_data : In, vector
        Valid with ``read_valid``.
    added : Out, stream of ``lanes`` int8
        The values of the chunks.
    claim : In, 1 bit
        A chunk is requested, which takes the next values later; only while ``ready`` is 1.
    ready : Out, 1 bit
        Values have arrived that no request has claimed.
    address_error : Out, 1 bit
        Pulse: a read beyond ``base`` and ``limit``.
    """

    def __init__(self, config):
        self.config = config
        self.space = latencies.added_chunks(config.array)
        address = VectorAddress(config)
        super().__init__({
            "job": In(JobFields(config)),
            "start": In(1),
            "base": In(address["word"].shape),
            "limit": In(address["word"].shape),
            "chunks": In(stream.Signature(MapChunk(config))),
            "reads": Out(stream.Signature(address)),
            "read_valid": In(1),
            "read_data": In(8 * config.array.depth),
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
        read = addresses.o
        m.d.comb += [
            addresses.start.eq(self.start),
            addresses.first.eq(self.job.add_input),
            addresses.pixel_step.eq(self.job.add_pixel_step),
            addresses.row_step.eq(self.job.add_row_step),
            addresses.width.eq(self.job.out_width),
            addresses.base.eq(self.base),
            addresses.limit.eq(self.limit),
            addresses.en.eq(~self.reads.valid | self.reads.ready),
            addresses.i.valid.eq(accept),
            addresses.i.chunk.eq(self.chunks.payload),
            full.eq(level == self.space),
            self.chunks.ready.eq(addresses.en & ~full),
            accept.eq(self.chunks.valid & self.chunks.ready),
            take.eq(self.added.valid & self.added.ready),
            self.reads.valid.eq(read.in_range),
            self.reads.payload.eq(read.address),
            self.address_error.eq(read.valid & ~read.in_range),
        ]
        m.d.sync += level.eq(level + accept - take)
        self._values(m, read.part)
        return m

    def _values(self, m, part):
        """Keeps the bytes of each chunk that arrives."""
        chunk = Signal(len(self.added.payload.as_value()))
        # ``part`` tells which chunk of its vector it is, and has no bits if a vector is one chunk.
        # The FIFO has the parts of the chunks whose data have not arrived.
        if len(part):
            m.submodules.parts = parts = SyncFIFOBuffered(width=len(part), depth=self.space)
            m.d.comb += [
                parts.w_en.eq(self.reads.valid & self.reads.ready),
                parts.w_data.eq(part),
                parts.r_en.eq(self.read_valid),
                chunk.eq(self.read_data.word_select(parts.r_data, len(chunk))),
            ]
        else:
            m.d.comb += chunk.eq(self.read_data)
        m.submodules.values = values = SyncFIFOBuffered(width=len(chunk), depth=self.space)
        arrived = Signal(range(self.space + 1))
        m.d.sync += arrived.eq(arrived + self.read_valid - self.claim)
        m.d.comb += [
            values.w_en.eq(self.read_valid),
            values.w_data.eq(chunk),
            values.r_en.eq(self.added.ready),
            self.added.valid.eq(values.r_rdy),
            self.added.payload.eq(values.r_data),
            self.ready.eq(arrived != 0),
        ]


class OutputSection(wiring.Component):
    """A `ChunkScheduler`, a `Rescaler`, a `MapStore`, and an `AddedMap` for ADD.

    Parameters
    ----------
    config : NetworkCoreConfig
    buffer_rows : int
        Depth of the result buffer in rows; a power of two.

    Attributes
    ----------
    job : In, `weft.hw.network_core.layouts.JobFields`
        Stable from ``start`` to ``done``.
    start : In, 1 bit
        Pulse: the job starts. The job before is done.
    base, limit : In, word number
        First word and first word beyond the range that the job may use, in all banks.
    tiles : In, `weft.hw.network_core.layouts.ComputedTile`
    row_written : In, 1 bit
        Pulse: the result buffer has one more row, readable from the next cycle on.
    release : Out, 1 bit
        Pulse: ``rows`` rows of the result buffer are free again.
    address, index : Out
        Row of the result buffer, and position of a chunk in it.
    sums : In, ``lanes`` x 32 bits
        The chunk at ``address`` and ``index``, `weft.network_core.latencies.result_read` cycles
        later.
    pair_sum : In, 32 bits
        The pair sum of its row, in the same cycle, which corrects the results of a fast inner
        product (`weft.hw.output.corrector`); not used if the MAC cell is not corrected.
    parameter_addr : Out
        A parameter line.
    parameter_line : In, ``lanes`` x `weft.hw.network_core.layouts.ColumnParameters`
        `weft.latencies.MEMORY_READ` cycles after ``parameter_addr``.
    table_addr : Out, ``lanes`` word addresses
        A word of the ADD table for each lane.
    table_data : In, ``lanes`` x 32 bits
        `weft.latencies.MEMORY_READ` cycles after ``table_addr``.
    reads : Out, stream of `weft.hw.network_core.layouts.VectorAddress`
        Reads of the added map.
    read_valid : In, 1 bit
        The data of a read, in the order of the reads.
    read_data : In, ``read_vectors`` vectors
        Valid with ``read_valid``; a read of the added map uses the first one.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    ending : Out, 1 bit; only if `weft.network_core.latencies.lead` is above 0
        Pulse, that many cycles before ``done``: the next job may start.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond ``base`` and ``limit``, which does not happen. If it was a read of
        the added map, the job waits until a reset.
    """

    def __init__(self, config, *, buffer_rows):
        self.config = config
        self.buffer_rows = buffer_rows
        array, address = config.array, VectorAddress(config)
        super().__init__({
            "job": In(JobFields(config)),
            "start": In(1),
            "base": In(address["word"].shape),
            "limit": In(address["word"].shape),
            "tiles": In(ComputedTile(config)),
            "row_written": In(1),
            "release": Out(1),
            "address": Out(ceil_log2(buffer_rows)),
            "index": Out(range(config.row_chunks)),
            "sums": In(data.ArrayLayout(signed(32), array.lanes)),
            "pair_sum": In(signed(32)),
            "parameter_addr": Out(range(config.lines)),
            "parameter_line": In(data.ArrayLayout(ColumnParameters, array.lanes)),
            "table_addr": Out(data.ArrayLayout(range(ADD_TABLE_WORDS), array.lanes)),
            "table_data": In(data.ArrayLayout(signed(32), array.lanes)),
            "reads": Out(stream.Signature(address)),
            "read_valid": In(1),
            "read_data": In(data.ArrayLayout(8 * array.depth, config.read_vectors)),
            "write": Out(MemoryWrite(config)),
            **({"ending": Out(1)} if lead(array) else {}),
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
        for block in (rescaler, added, store):
            m.d.comb += [block.job.eq(self.job), block.start.eq(self.start)]
        for block in (added, store):
            m.d.comb += [block.base.eq(self.base), block.limit.eq(self.limit)]
        m.d.comb += [
            scheduler.add.eq(self.job.add),
            scheduler.tiles.eq(self.tiles),
            scheduler.row_written.eq(self.row_written),
            scheduler.added_ready.eq(added.ready),
            scheduler.ready.eq(rescaler.ready),
            self.address.eq(scheduler.address),
            self.index.eq(scheduler.index),
            self.release.eq(scheduler.release),
            added.claim.eq(scheduler.request.valid & self.job.add),
            added.read_valid.eq(self.read_valid),
            added.read_data.eq(self.read_data[0]),  # one vector a read
            rescaler.request.eq(scheduler.request),
            rescaler.sums.eq(self.sums),
            rescaler.pair_sum.eq(self.pair_sum),
            rescaler.parameter_line.eq(self.parameter_line),
            self.parameter_addr.eq(rescaler.parameter_addr),
            self.table_addr.eq(rescaler.table_addr),
            rescaler.table_data.eq(self.table_data),
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
        if lead(self.config.array):
            m.d.comb += self.ending.eq(store.ending)
        return m
