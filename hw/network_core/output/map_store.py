"""The map store: writes the results or the sums of chunks to the output map of a job.

`ChunkAddresses` has the addresses, `SumParts` divides a chunk of sums.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import MemoryWindow, job_ports
from weft.hw.network_core.layouts import MapChunk, VectorAddress, later_sum, within
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.network_core import latencies
from weft.network_core.latencies import CHUNK_STORE, SUM_PARTS

__all__ = ["ChunkAddress", "ChunkAddresses", "MapStore", "SumParts"]


class ChunkAddress(data.StructLayout):
    """Where a chunk lies.

    ============== ================================================================================
    ``valid``      there is a chunk
    ``address``    its vector
    ``part``       its place in the vector, in chunks
    ``lane_last``  the last lane with a result
    ``last``       the chunk is valid, and the last one of its job
    ``in_range``   the chunk is valid, and the vector lies in the range that the job may use
    ============== ================================================================================
    """

    def __init__(self, config):
        chunk = MapChunk(config)
        super().__init__({
            "valid": 1,
            "address": VectorAddress(config),
            "part": range(config.array.depth // config.array.lanes),
            "lane_last": chunk["lane_last"].shape,
            "last": 1,
            "in_range": 1,
        })


class ChunkAddresses(wiring.Component):
    """Follows the chunks of a job through a map, without a multiplication.

    The pixels of a map follow each other. A panel starts with the pixel behind the panel before,
    and each tile of a panel starts with its first pixel. The chunks of a pixel follow each other,
    ``depth / lanes`` in a vector; each tile starts behind the tile before.

    Banks are computed first; a carry leads from a bank to its word a cycle later.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    start : In, 1 bit
        Pulse: the next chunk is the first one of a job.
    first : In, `weft.hw.network_core.layouts.VectorAddress`
        Of pixel (0, 0); valid with ``start``.
    pixel_step, row_step : In, `weft.hw.network_core.layouts.VectorAddress`
        To the next pixel in a row, and from the last pixel of a row to the next row. Like all
        inputs below they are stable from ``start`` to the last chunk.
    width : In, 16 bits
        Pixels in a row.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    en : In, 1 bit
        All stages advance.
    i : In, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
    o : Out, `ChunkAddress`
        `weft.network_core.latencies.CHUNK_ADDRESS` cycles of ``en`` after ``i``.
    frontier : Out, `weft.hw.network_core.layouts.VectorAddress`; only with the option ``early``
        Of the first pixel of the panel that ``o`` has not left. It moves on in the cycle before
        ``o`` has the last chunk of a panel.
    """

    def __init__(self, config):
        self.config = config
        self.parts = config.array.depth // config.array.lanes
        address = VectorAddress(config)
        self.Stage = data.StructLayout({
            "valid": 1, "chunk": MapChunk(config), "row_last": 1, "pixel_carry": 1,
            "vector_carry": 1, "bank_sum": range(2 * config.banks), "part": range(self.parts),
        })
        super().__init__({
            "start": In(1),
            "first": In(address),
            "pixel_step": In(address),
            "row_step": In(address),
            "width": In(16),
            "window": In(MemoryWindow.of(config)),
            "en": In(1),
            "i": In(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "o": Out(ChunkAddress(config)),
            **({"frontier": Out(address)} if config.early else {}),
        })

    def elaborate(self, platform):
        m = Module()
        bank, s_bank = Signal(self.Stage), Signal(self.Stage)
        advance, s_advance = Signal(), Signal()
        row_last = self._rows(m, advance)
        pixel_bank, pixel_carry, first_bank = self._pixel_banks(m, advance, row_last)
        vector_bank, vector_carry, part = self._column_banks(m, advance)
        m.d.comb += [
            advance.eq(self.en & self.i.valid), s_advance.eq(self.en & s_bank.valid),
            bank.valid.eq(self.i.valid), bank.chunk.eq(self.i.chunk), bank.row_last.eq(row_last),
            bank.pixel_carry.eq(pixel_carry), bank.vector_carry.eq(vector_carry),
            bank.bank_sum.eq(pixel_bank + vector_bank), bank.part.eq(part),
        ]
        pixel_word, first_word = self._pixel_words(m, s_advance, s_bank)
        vector_word = self._column_words(m, s_advance, s_bank)
        s_word, carry = Signal.like(self.o), s_bank.bank_sum >= self.config.banks
        with m.If(self.en):
            m.d.sync += [
                s_bank.eq(bank),
                s_word.valid.eq(s_bank.valid), s_word.part.eq(s_bank.part),
                s_word.lane_last.eq(s_bank.chunk.lane_last), s_word.last.eq(s_bank.chunk.last),
                s_word.address.bank.eq(s_bank.bank_sum - Mux(carry, self.config.banks, 0)),
                s_word.address.word.eq(pixel_word + vector_word + carry),
                self.o.eq(s_word), self.o.last.eq(s_word.valid & s_word.last),
                self.o.in_range.eq(
                    s_word.valid & within(
                        self.config, s_word.address, 1, self.window.base, self.window.limit
                    )
                ),
            ]
        if self.config.early:
            m.d.comb += self.frontier.word.eq(first_word)
            with m.If(self.en):
                m.d.sync += self.frontier.bank.eq(first_bank)
        return m

    def _rows(self, m, advance):
        """Whether the chunk's pixel is the last one in its row of the map."""
        chunk = self.i.chunk
        # Pixels of the row after this one, minus one: below 0 at the last pixel.
        rest, first, full, following = (
            Signal(signed(len(self.width) + 1), name=name, reset_less=True)
            for name in ("rest", "first_rest", "full_rest", "following_rest")
        )
        m.d.sync += full.eq(self.width - 2)
        m.d.comb += following.eq(Mux(rest[-1], full, rest - 1))
        with m.If(chunk.tile_end & ~chunk.panel_end):
            m.d.comb += following.eq(first)
        self._follow(m, advance, chunk, rest, first, following, self.width - 2)
        return rest[-1]

    def _pixel_banks(self, m, advance, row_last):
        """The bank of the chunk's pixel; the carry into the word of the next pixel; the bank of the
        panel's first pixel.
        """
        chunk, banks = self.i.chunk, self.config.banks
        pixel, first, following = (
            Signal(range(banks), name=name, reset_less=True)
            for name in ("bank", "first_bank", "following_bank")
        )
        # Two sums at once: with the step, and with the step less all banks.
        steps, differences = (self.pixel_step.bank, self.row_step.bank), []
        for step in steps:
            differences.append(Signal(signed(len(pixel) + 2), name="difference"))
            m.d.sync += differences[-1].eq(step - banks)
        wrapped, carry = Signal(signed(len(pixel) + 2)), Signal()
        m.d.comb += [
            wrapped.eq(pixel + Mux(row_last, differences[1], differences[0])),
            carry.eq(~wrapped[-1]),
            following.eq(Mux(carry, wrapped, pixel + Mux(row_last, steps[1], steps[0]))),
        ]
        with m.If(chunk.tile_end & ~chunk.panel_end):
            m.d.comb += following.eq(first)
        self._follow(m, advance, chunk, pixel, first, following, self.first.bank)
        return pixel, carry, first

    def _pixel_words(self, m, advance, stage):
        """The word of the pixel, and of the panel's first one, a cycle after its bank."""
        chunk = stage.chunk
        pixel, first, following = (
            Signal(len(self.first.word), name=name, reset_less=True)
            for name in ("word", "first_word", "following_word")
        )
        step = Mux(stage.row_last, self.row_step.word, self.pixel_step.word)
        m.d.comb += following.eq(pixel + step + stage.pixel_carry)
        with m.If(chunk.tile_end & ~chunk.panel_end):
            m.d.comb += following.eq(first)
        self._follow(m, advance, chunk, pixel, first, following, self.first.word)
        return pixel, first

    def _follow(self, m, advance, chunk, pixel, first, following, start):
        """Move ``pixel`` on after each row of a tile; ``first`` is the one of the panel."""
        with m.If(advance & chunk.row_end):
            m.d.sync += pixel.eq(following)
        with m.If(advance & chunk.panel_end):
            m.d.sync += first.eq(following)
        with m.If(self.start):
            m.d.sync += [pixel.eq(start), first.eq(start)]

    def _column_banks(self, m, advance):
        """The bank of the chunk's vector, as a step from its pixel; its carry; its place in it.

        They are 0 after each panel, so they need no start.
        """
        vector, tile_vector = (
            Signal(range(self.config.banks), name=name) for name in ("vector", "tile_vector")
        )
        part, tile_part = (
            Signal(ceil_log2(self.parts), name=name) for name in ("part", "tile_part")
        )
        # Verilator reports a comparison that is always true.
        part_last = part == self.parts - 1 if self.parts > 1 else Const(1)
        bank_last = vector == self.config.banks - 1 if self.config.banks > 1 else Const(1)
        next_bank = Mux(part_last, Mux(bank_last, 0, vector + 1), vector)
        self._follow_columns(m, advance, self.i.chunk, vector, tile_vector, next_bank)
        self._follow_columns(m, advance, self.i.chunk, part, tile_part, part + 1)
        return vector, part_last & bank_last, part

    def _column_words(self, m, advance, stage):
        """The word of the vector, as a step from its pixel, a cycle after its bank."""
        vector, tile_vector = (
            Signal(len(self.first.word), name=name) for name in ("vector_word", "tile_word")
        )
        following = vector + stage.vector_carry
        self._follow_columns(m, advance, stage.chunk, vector, tile_vector, following)
        return vector

    def _follow_columns(self, m, advance, chunk, place, tile_place, following):
        """Move ``place`` on after each chunk; ``tile_place`` is the one of the tile."""
        with m.If(advance):
            m.d.sync += place.eq(following)
            with m.If(chunk.row_end & ~chunk.tile_end):
                m.d.sync += place.eq(tile_place)
            with m.If(chunk.tile_end):
                m.d.sync += tile_place.eq(following)
            with m.If(chunk.panel_end):
                m.d.sync += [place.eq(0), tile_place.eq(0)]


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

    A job with ``two_rows`` writes the chunk of the next pixel in the same cycle. Both pixels lie in
    a row of the map, so their addresses are the ones of two maps with half of the pixels.

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
    second_results : In, ``lanes`` int8; only with the option ``two_rows``
        Of the next pixel.
    results_next : In, 1 bit
        ``results`` is valid `weft.network_core.latencies.CHUNK_STORE` cycles later.
    sums : In, ``lanes`` x 32 bits
    sums_next : In, 1 bit
        ``sums`` is valid in the next cycle. Pulses are at least four slots apart.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    second_write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        Of the next pixel; only with the option ``two_rows``.
    ending : Out, 1 bit; only if `weft.network_core.latencies.lead` is above 0
        Pulse, that many cycles before ``done``.
    frontier : Out, `weft.hw.network_core.layouts.VectorAddress`; only with the option ``early``
        Of the first pixel of the panel that is not stored. It moves on in the cycle before the last
        write of a panel.
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: a write beyond the window.
    """

    def __init__(self, config):
        self.config = config
        self.depth, self.lanes = config.array.depth, config.array.lanes
        super().__init__({
            **job_ports(config),
            "request": In(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "results": In(data.ArrayLayout(signed(8), self.lanes)),
            "results_next": In(1),
            "sums": In(data.ArrayLayout(signed(32), self.lanes)),
            "sums_next": In(1),
            "write": Out(MemoryWrite(config)),
            **({
                "second_results": In(data.ArrayLayout(signed(8), self.lanes)),
                "second_write": Out(MemoryWrite(config)),
            } if config.two_rows else {}),
            **({"ending": Out(1)} if latencies.lead(config) else {}),
            **({"frontier": Out(VectorAddress(config))} if config.early else {}),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.addresses = addresses = ChunkAddresses(self.config)
        m.submodules.chunks = chunks = SyncFIFOBuffered(
            width=self.request.chunk.shape().size,
            depth=latencies.chunks_in_flight(self.config)
        )
        m.submodules.parts = parts = SumParts(self.config)
        following = Signal.like(addresses.i)  # the chunk, or the part of one, that is stored next
        m.d.sync += following.eq(Mux(
            self.job.fields.sums, parts.part.as_value(), Cat(self.results_next, chunks.r_data)
        ))
        job, chunk = self.job.fields, addresses.o
        connect(m, flipped(self.window), addresses.window)
        if latencies.lead(self.config):
            m.d.comb += self.ending.eq(following.valid & following.chunk.last)
        if self.config.early:
            m.d.comb += self.frontier.eq(addresses.frontier)
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
        if self.config.two_rows:
            self._pairs(m, addresses, following)
        return m

    def _pairs(self, m, addresses, following):
        """The steps from pair to pair, and the write of the second pixel of a pair.

        They are sums of fields, 2 cycles after the start of the job; the first chunk comes later.
        """
        job, banks = self.job.fields, self.config.banks
        m.submodules.second = second = ChunkAddresses(self.config)
        connect(m, flipped(self.window), second.window)
        for name, step in (("pixel", job.output_pixel_step), ("row", job.output_row_step)):
            of_pairs = later_sum(m, job.output_pixel_step, step, banks, f"{name}_step_of_pairs")
            chosen = Signal.like(of_pairs, name=f"{name}_step", reset_less=True)
            m.d.sync += chosen.as_value().eq(
                Mux(job.two_rows, of_pairs.as_value(), step.as_value())
            )
            m.d.comb += [getattr(each, f"{name}_step").eq(chosen) for each in (addresses, second)]
        m.d.comb += [
            addresses.width.eq(Mux(job.two_rows, job.out_width >> 1, job.out_width)),
            second.width.eq(job.out_width >> 1),
            second.start.eq(pipeline(m, self.job.start, 2, "second_start")),
            second.first.eq(later_sum(m, job.output, job.output_pixel_step, banks, "second_first")),
            second.en.eq(1),
            second.i.chunk.eq(following.chunk),
            second.i.valid.eq(following.valid & job.two_rows),
        ]
        chunk, write = second.o, self.second_write
        m.d.comb += [
            write.valid.eq(chunk.in_range),
            write.address.eq(chunk.address),
            write.data.eq(self.second_results.as_value().replicate(self.depth // self.lanes)),
            write.enable.eq(self._enable(chunk)),
            self.address_error.eq(
                (addresses.o.valid & ~addresses.o.in_range)
                | (chunk.valid & ~chunk.in_range)
            ),
        ]

    def _enable(self, chunk):
        """A bit for each byte of the vector."""
        lanes = (Const(2, self.lanes + 1) << chunk.lane_last) - 1
        return lanes[: self.lanes] << (chunk.part << (self.lanes - 1).bit_length())
