"""The map store: writes the results or the sums of chunks to the output map of a job."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.chunk_addresses import ChunkAddresses
from weft.hw.network_core.layouts import JobFields, MapChunk, VectorAddress
from weft.hw.network_core.memory import MemoryWrite
from weft.hw.network_core.sum_parts import SumParts
from weft.network_core import latencies

__all__ = ["MapStore"]


class MapStore(wiring.Component):
    """Writes each chunk in the cycle of its results; a byte beyond column N is never written.

    A chunk of sums is written in parts of ``lanes`` bytes, one in each slot of ``scale_cycles``.
    A write beyond ``base`` and ``limit`` does not happen. The job ends all the same.

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
    request : In, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The chunk that is requested in this cycle.
    results : In, ``lanes`` int8
    results_next : In, 1 bit
        ``results`` is valid `weft.network_core.latencies.CHUNK_STORE` cycles later.
    sums : In, ``lanes`` x 32 bits
    sums_next : In, 1 bit
        ``sums`` is valid in the next cycle. Pulses are at least four slots apart.
    write : Out, `weft.hw.network_core.memory.MemoryWrite`
    ending : Out, 1 bit; only if jobs start early
        Pulse, `weft.network_core.latencies.lead` cycles before ``done``.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: a write beyond ``base`` and ``limit``.
    """

    def __init__(self, config):
        self.config = config
        self.depth, self.lanes = config.array.depth, config.array.lanes
        address = VectorAddress(config)
        super().__init__({
            "job": In(JobFields(config)),
            "start": In(1),
            "base": In(address["word"].shape),
            "limit": In(address["word"].shape),
            "request": In(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "results": In(data.ArrayLayout(signed(8), self.lanes)),
            "results_next": In(1),
            "sums": In(data.ArrayLayout(signed(32), self.lanes)),
            "sums_next": In(1),
            "write": Out(MemoryWrite(config)),
            **({"ending": Out(1)} if latencies.lead(config.array) else {}),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.addresses = addresses = ChunkAddresses(self.config)
        m.submodules.chunks = chunks = SyncFIFOBuffered(
            width=self.request.chunk.shape().size,
            depth=latencies.chunks_in_flight(self.config.array)
        )
        m.submodules.parts = parts = SumParts(self.config)
        following = Signal.like(addresses.i)  # the chunk, or the part of one, that is stored next
        m.d.sync += following.eq(Mux(
            self.job.sums, parts.part.as_value(), Cat(self.results_next, chunks.r_data)
        ))
        chunk = addresses.o
        if latencies.lead(self.config.array):
            m.d.comb += self.ending.eq(following.valid & following.chunk.last)
        m.d.comb += [
            chunks.w_en.eq(self.request.valid),
            chunks.w_data.eq(self.request.chunk),
            chunks.r_en.eq(self.results_next | parts.take),
            parts.next.eq(self.sums_next),
            parts.chunk.eq(chunks.r_data),
            parts.sums.eq(self.sums),
            addresses.start.eq(self.start),
            addresses.first.eq(self.job.output),
            addresses.pixel_step.eq(self.job.output_pixel_step),
            addresses.row_step.eq(self.job.output_row_step),
            addresses.width.eq(self.job.out_width),
            addresses.base.eq(self.base),
            addresses.limit.eq(self.limit),
            addresses.en.eq(1),
            addresses.i.eq(following),
            self.write.valid.eq(chunk.in_range),
            self.write.address.eq(chunk.address),
            self.write.data.eq(
                Mux(self.job.sums, parts.bytes, self.results.as_value())
                .replicate(self.depth // self.lanes)
            ),
            self.write.enable.eq(self._enable(chunk)),
            self.done.eq(chunk.last),
            self.address_error.eq(chunk.valid & ~chunk.in_range),
        ]
        return m

    def _enable(self, chunk):
        """A bit for each byte of the vector."""
        lanes = (Const(2, self.lanes + 1) << chunk.lane_last) - 1
        return lanes[: self.lanes] << (chunk.part << (self.lanes - 1).bit_length())
