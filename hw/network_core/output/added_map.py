"""The added map of a job with ADD: reads its values, chunk by chunk, ahead of the scalers."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import JobPort, MemoryWindow, ReadPort
from weft.hw.network_core.layouts import MapChunk
from weft.hw.network_core.output.chunk_addresses import ChunkAddresses
from weft.network_core import latencies

__all__ = ["AddedMap"]


class AddedMap(wiring.Component):
    """Reads the vector of each chunk through the side port, and keeps the bytes of the chunk.

    Reads are bounded: a chunk is accepted while there is space for its bytes. A read beyond the
    window does not happen; then the job needs a reset.

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
        # Chunks between their acceptance and the scalers.
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
        if len(part):  # the places of the chunks whose data have not arrived
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
