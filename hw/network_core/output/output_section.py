"""The output section: from announced tiles and their sums to a map in the memory."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import (
    JobPort,
    LineRead,
    MemoryWindow,
    ReadPort,
    ResultRead,
    TableRead,
)
from weft.hw.network_core.layouts import ComputedTile
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.added_map import AddedMap
from weft.hw.network_core.output.chunk_scheduler import ChunkScheduler
from weft.hw.network_core.output.map_store import MapStore
from weft.hw.network_core.output.rescaler import Rescaler
from weft.network_core.latencies import lead

__all__ = ["OutputSection"]


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
    ending : Out, 1 bit; only if jobs start early
        Pulse, `weft.network_core.latencies.lead` cycles before ``done``.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window, which does not happen. The job may need a
        reset then.
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
