"""The output section: from announced tiles and their sums to a map in the memory.

`AddedMap` is the part for ADD, a job that adds a second map to its results.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import (
    LineRead,
    ReadPort,
    ResultRead,
    TableRead,
    job_ports,
)
from weft.hw.network_core.layouts import ComputedTile, MapChunk, VectorAddress, is_of_unit
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.chunk_scheduler import ChunkScheduler
from weft.hw.network_core.output.lstm import Lstm
from weft.hw.network_core.output.map_store import ChunkAddresses, MapStore
from weft.hw.network_core.output.rescaler import Rescaler
from weft.hw.network_core.output.softmax import Softmax
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core import latencies
from weft.network_core.latencies import is_spread, lead

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
    second_write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        Of the next pixel, in the same cycle; only with the option ``two_rows``.
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
            **({"second_write": Out(MemoryWrite(config))} if config.two_rows else {}),
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
        if self.config.two_rows:
            m.d.comb += [
                scheduler.pairs.eq(self.job.fields.two_rows),
                rescaler.second_sums.eq(rows.second_sums),
                rescaler.second_pair_sum.eq(rows.second_pair_sum),
                store.second_results.eq(rescaler.second_results),
                self.second_write.eq(store.second_write),
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
