"""The map store: writes the results or the sums of chunks to the output map of a job."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import JobPort, MemoryWindow
from weft.hw.network_core.layouts import MapChunk
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.network_core.output.chunk_addresses import ChunkAddresses
from weft.network_core import latencies
from weft.network_core.latencies import CHUNK_STORE, SUM_PARTS

__all__ = ["MapStore", "SumParts"]


class SumParts(wiring.Component):
    """Divides the ``4 * lanes`` bytes of a chunk of sums, little-endian, into four parts.

    Each part is a chunk of ``lanes`` bytes. Parts without a byte are missing: a chunk with few
    columns has fewer parts. The last part has the ends of rows, tiles, panels and the job.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    next : In, 1 bit
        Pulse: ``sums`` is valid in the next cycle. Pulses are at least four slots of
        ``scale_cycles`` apart.
    sums : In, ``lanes`` x 32 bits
    chunk : In, `weft.hw.network_core.layouts.MapChunk`
        The chunk of the sums, from ``next`` to ``take``.
    part : Out, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The first part in the cycle of ``next``, the other ones in the slots after it.
    take : Out, 1 bit
        Pulse, with the last part.
    bytes : Out, ``lanes`` bytes
        Of the part, `weft.network_core.latencies.CHUNK_STORE` cycles later.
    """

    def __init__(self, config):
        self.cycles = config.array.scale_cycles
        self.lanes = config.array.lanes
        super().__init__({
            "next": In(1),
            "sums": In(data.ArrayLayout(signed(32), self.lanes)),
            "chunk": In(MapChunk(config)),
            "part": Out(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "take": Out(1),
            "bytes": Out(8 * self.lanes),
        })

    def elaborate(self, platform):
        m = Module()
        index, busy = Signal(range(SUM_PARTS)), Signal()
        wait = Signal(range(self.cycles))  # cycles to the next slot
        # The last byte of the chunk: its part, and its place there.
        lane_bits = (self.lanes - 1).bit_length()
        last_byte = Cat(Const(SUM_PARTS - 1, 2), self.chunk.lane_last)[: lane_bits + 2]
        last = index == last_byte[lane_bits:]
        part = self.part
        m.d.comb += [
            part.valid.eq(self.next | (busy & (wait == 0))),
            part.chunk.eq(self.chunk),
            part.chunk.lane_last.eq(Mux(last, last_byte[:lane_bits], self.lanes - 1)),
            self.take.eq(part.valid & last),
        ]
        for name in ("row_end", "tile_end", "panel_end", "last"):
            m.d.comb += part.chunk[name].eq(self.chunk[name] & last)
        with m.If(part.valid):
            m.d.sync += [
                index.eq(Mux(last, 0, index + 1)), busy.eq(~last), wait.eq(self.cycles - 1),
            ]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        self._bytes(m, index)
        return m

    def _bytes(self, m, index):
        """Keep the sums, and select a part: a register for each one, of which three are 0."""
        sums, valid = Signal.like(self.sums, reset_less=True), Signal()
        m.d.sync += valid.eq(self.next)
        with m.If(valid):
            m.d.sync += sums.eq(self.sums)
        onehot = Signal(SUM_PARTS)
        m.d.comb += onehot.eq(1 << index)
        masked = []
        for n, selected in enumerate(pipeline(m, onehot, CHUNK_STORE - 2, "selected")):
            part = sums.as_value().word_select(n, len(self.bytes))
            masked.append(Signal.like(self.bytes, name=f"part_{n}", reset_less=True))
            m.d.sync += masked[-1].eq(Mux(selected, part, 0))
        m.d.comb += self.bytes.eq(pipeline(m, reduce(or_, masked), 1, "bytes"))


class MapStore(wiring.Component):
    """Writes each chunk in the cycle of its results; a byte beyond column N is never written.

    A chunk of sums is written in parts of ``lanes`` bytes, one in each slot of ``scale_cycles``.
    A write beyond the window does not happen. The job ends all the same.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    request : In, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The chunk that is requested in this cycle.
    results : In, ``lanes`` int8
    results_next : In, 1 bit
        ``results`` is valid `weft.network_core.latencies.CHUNK_STORE` cycles later.
    sums : In, ``lanes`` x 32 bits
    sums_next : In, 1 bit
        ``sums`` is valid in the next cycle. Pulses are at least four slots apart.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    ending : Out, 1 bit; only if jobs start early
        Pulse, `weft.network_core.latencies.lead` cycles before ``done``.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: a write beyond the window.
    """

    def __init__(self, config):
        self.config = config
        self.depth, self.lanes = config.array.depth, config.array.lanes
        super().__init__({
            "job": In(JobPort(config)),
            "window": In(MemoryWindow.of(config)),
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
            self.job.fields.sums, parts.part.as_value(), Cat(self.results_next, chunks.r_data)
        ))
        job, chunk = self.job.fields, addresses.o
        connect(m, flipped(self.window), addresses.window)
        if latencies.lead(self.config.array):
            m.d.comb += self.ending.eq(following.valid & following.chunk.last)
        m.d.comb += [
            chunks.w_en.eq(self.request.valid),
            chunks.w_data.eq(self.request.chunk),
            chunks.r_en.eq(self.results_next | parts.take),
            parts.next.eq(self.sums_next),
            parts.chunk.eq(chunks.r_data),
            parts.sums.eq(self.sums),
            addresses.start.eq(self.job.start),
            addresses.first.eq(job.output),
            addresses.pixel_step.eq(job.output_pixel_step),
            addresses.row_step.eq(job.output_row_step),
            addresses.width.eq(job.out_width),
            addresses.en.eq(1),
            addresses.i.eq(following),
            self.write.valid.eq(chunk.in_range),
            self.write.address.eq(chunk.address),
            self.write.data.eq(
                Mux(job.sums, parts.bytes, self.results.as_value())
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
