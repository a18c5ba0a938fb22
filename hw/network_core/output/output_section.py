"""The output section: from announced tiles and their sums to a map in the memory.

`AddedMap` is its part for ADD, a job that adds a second map to its results.
"""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import (
    JobPort,
    LineRead,
    MemoryWindow,
    ReadPort,
    ResultRead,
    TableRead,
)
from weft.hw.network_core.layouts import ComputedTile, MapChunk
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.chunk_scheduler import ChunkScheduler
from weft.hw.network_core.output.map_store import ChunkAddresses, MapStore
from weft.hw.network_core.output.rescaler import Rescaler
from weft.network_core import latencies
from weft.network_core.latencies import lead

__all__ = ["AddedMap", "OutputSection"]


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
        self.space = latencies.added_chunks(config.array)
        super().__init__({
            "job": In(JobPort(config)),
            "window": In(MemoryWindow.of(config)),
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
        m.d.comb += [
            addresses.start.eq(self.job.start),
            addresses.first.eq(job.add_input),
            addresses.pixel_step.eq(job.add_pixel_step),
            addresses.row_step.eq(job.add_row_step),
            addresses.width.eq(job.out_width),
            addresses.en.eq(~request.valid | request.ready),
            addresses.i.valid.eq(accept),
            addresses.i.chunk.eq(self.chunks.payload),
            full.eq(level == self.space),
            self.chunks.ready.eq(addresses.en & ~full),
            accept.eq(self.chunks.valid & self.chunks.ready),
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
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    ending : Out, 1 bit; only if `weft.network_core.latencies.lead` is above 0
        Pulse, that many cycles before ``done``: the next job may start.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window, which does not happen. If it was a read of the added
        map, the job waits until a reset.
    """

    def __init__(self, config, *, buffer_rows):
        self.config = config
        self.buffer_rows = buffer_rows
        super().__init__({
            "job": In(JobPort(config)),
            "window": In(MemoryWindow.of(config)),
            "tiles": In(ComputedTile(config)),
            "rows": Out(ResultRead(config, buffer_rows)),
            "release": Out(1),
            "lines": Out(LineRead(config)),
            "table": Out(TableRead(config)),
            "reads": Out(ReadPort(config)),
            "write": Out(MemoryWrite(config)),
            **({"ending": Out(1)} if lead(config.array) else {}),
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
        if lead(self.config.array):
            m.d.comb += self.ending.eq(store.ending)
        return m
