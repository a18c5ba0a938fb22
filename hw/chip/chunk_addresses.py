"""The addresses of chunks in a map, by increments in the order of the chunks."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.chip.layouts import MapChunk, VectorAddress, add_addresses, within

__all__ = ["ChunkAddress", "ChunkAddresses"]


class ChunkAddress(data.StructLayout):
    """Where a chunk lies.

    ============== ================================================================================
    ``valid``      there is a chunk
    ``address``    its vector
    ``part``       its place in the vector, in chunks
    ``lane_last``  the last lane with a result
    ``last``       the chunk is the last one of its job
    ``in_range``   the vector lies in the range that the job may use
    ============== ================================================================================
    """

    def __init__(self, chip):
        chunk = MapChunk(chip)
        super().__init__({
            "valid": 1,
            "address": VectorAddress(chip),
            "part": range(chip.core.depth // chip.core.lanes),
            "lane_last": chunk["lane_last"].shape,
            "last": 1,
            "in_range": 1,
        })


class ChunkAddresses(wiring.Component):
    """Follows the chunks of a job through a map, without a multiplication.

    The pixels of a map follow each other. A panel starts with the pixel behind the panel before,
    and each tile of a panel starts with its first pixel. The chunks of a pixel follow each other,
    ``depth / lanes`` in a vector; each tile starts behind the tile before.

    Parameters
    ----------
    chip : ChipConfig

    Attributes
    ----------
    start : In, 1 bit
        Pulse: the next chunk is the first one of a job.
    first : In, `weft.hw.chip.layouts.VectorAddress`
        Of pixel (0, 0); valid with ``start``.
    pixel_step, row_step : In, `weft.hw.chip.layouts.VectorAddress`
        To the next pixel in a row, and from the last pixel of a row to the next row. Like all
        inputs below they are stable from ``start`` to the last chunk.
    width : In, 16 bits
        Pixels in a row.
    base, limit : In, word number
        First word and first word beyond the range that the job may use, in all banks.
    en : In, 1 bit
        All stages advance.
    i : In, ``valid`` and a `weft.hw.chip.layouts.MapChunk`
    o : Out, `ChunkAddress`
        `weft.chip.latencies.CHUNK_ADDRESS` cycles of ``en`` after ``i``.
    """

    def __init__(self, chip):
        self.chip = chip
        self.banks = chip.banks
        self.parts = chip.core.depth // chip.core.lanes
        self.Address = address = VectorAddress(chip)
        super().__init__({
            "start": In(1),
            "first": In(address),
            "pixel_step": In(address),
            "row_step": In(address),
            "width": In(16),
            "base": In(address["word"].shape),
            "limit": In(address["word"].shape),
            "en": In(1),
            "i": In(data.StructLayout({"valid": 1, "chunk": MapChunk(chip)})),
            "o": Out(ChunkAddress(chip)),
        })

    def elaborate(self, platform):
        m = Module()
        chunk, s_chunk = self.i.chunk, Signal.like(self.o)
        advance = Signal()
        m.d.comb += advance.eq(self.en & self.i.valid)
        pixel = self._pixel(m, advance)
        vector, part = self._column(m, advance)
        address = add_addresses(m, pixel, vector, self.banks, "chunk")
        with m.If(self.en):
            m.d.sync += [
                s_chunk.valid.eq(self.i.valid), s_chunk.address.eq(address), s_chunk.part.eq(part),
                s_chunk.lane_last.eq(chunk.lane_last), s_chunk.last.eq(chunk.last),
                self.o.eq(s_chunk),
                self.o.in_range.eq(within(self.chip, s_chunk.address, 1, self.base, self.limit)),
            ]
        return m

    def _pixel(self, m, advance):
        """The address of the chunk's pixel."""
        chunk = self.i.chunk
        pixel, first = (Signal(self.Address, name=name) for name in ("pixel", "panel_pixel"))
        # Pixels of the row of the map after this one, and after the first one of the panel.
        rest, first_rest = (Signal(16, name=name) for name in ("rest", "panel_rest"))
        row_last = rest == 0
        step = Mux(row_last, self.row_step, self.pixel_step)
        following = add_addresses(m, pixel, self.Address(step), self.banks, "following")
        next_pixel, next_rest = Signal.like(pixel), Signal.like(rest)
        m.d.comb += [next_pixel.eq(following), next_rest.eq(Mux(row_last, self.width, rest) - 1)]
        with m.If(chunk.tile_end & ~chunk.panel_end):
            m.d.comb += [next_pixel.eq(first), next_rest.eq(first_rest)]
        with m.If(advance & chunk.row_end):
            m.d.sync += [pixel.eq(next_pixel), rest.eq(next_rest)]
        with m.If(advance & chunk.panel_end):
            m.d.sync += [first.eq(next_pixel), first_rest.eq(next_rest)]
        with m.If(self.start):
            m.d.sync += [
                pixel.eq(self.first), first.eq(self.first),
                rest.eq(self.width - 1), first_rest.eq(self.width - 1),
            ]
        return pixel

    def _column(self, m, advance):
        """The chunk's vector, as a step from its pixel, and its place in the vector.

        They are 0 after each panel, so they need no start.
        """
        chunk = self.i.chunk
        vector, tile_vector = (
            Signal(self.Address, name=name) for name in ("vector", "tile_vector")
        )
        part, tile_part = (
            Signal(ceil_log2(self.parts), name=name) for name in ("part", "tile_part")
        )
        # Verilator reports a comparison that is always true.
        part_last = part == self.parts - 1 if self.parts > 1 else Const(1)
        bank_last = vector.bank == self.banks - 1 if self.banks > 1 else Const(1)
        next_vector, next_part = Signal.like(vector), Signal.like(part)
        m.d.comb += [
            next_part.eq(part + 1),
            next_vector.bank.eq(
                Mux(part_last, Mux(bank_last, 0, vector.bank + 1), vector.bank)
            ),
            next_vector.word.eq(vector.word + (part_last & bank_last)),
        ]
        with m.If(chunk.panel_end):
            m.d.comb += [next_vector.eq(0), next_part.eq(0)]
        with m.Elif(chunk.row_end & ~chunk.tile_end):
            m.d.comb += [next_vector.eq(tile_vector), next_part.eq(tile_part)]
        with m.If(advance):
            m.d.sync += [vector.eq(next_vector), part.eq(next_part)]
            with m.If(chunk.tile_end):
                m.d.sync += [tile_vector.eq(next_vector), tile_part.eq(next_part)]
        return vector, part
