"""The result address generator: cuts result words into write units, and gives each an address."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.writer import Beat, WriteCombiner, WriteUnit
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = [
    "JOB_WORDS", "OPERAND_ERROR", "JobState", "ResultAddressGenerator", "RowState", "TileState",
    "UnitAddress",
]


# The registers of the generator come first: job, tile, row, and address of the next unit. A unit is
# a part of a result word that is written to memory at an address of its own.

JOB_WORDS = 5  # descriptor words of each job


class JobState:
    """Registers of the job: fields of its descriptor, and the index of its next word.

    Attributes
    ----------
    word_index : Signal
        Index of the next descriptor word, 0 to ``JOB_WORDS - 1``.
    tag, narrow, n : Signal
        The tag of the job; 1 if its results have the narrow type; N.
    operand_error : Signal
        A memory read of operands failed before this job; its status says so.
    """

    def __init__(self):
        self.word_index = Signal(range(JOB_WORDS))
        self.tag = Signal(16, reset_less=True)
        self.narrow = Signal()
        self.n = Signal(16, reset_less=True, name="n")
        self.operand_error = Signal()


class TileState:
    """State of the tile. Numbers of rows and columns are stored less one: 0 means one.

    Attributes
    ----------
    rows_left, cols_left : Signal
        Rows and columns of C from this tile on, the tile included.
    width, height : Signal
        Columns of the tile; rows of the tile from this row on, the row included.
    leftmost : Signal
        The tile is the leftmost one of its row of tiles.
    more_right, more_below : Signal
        More tiles follow on the right; more tiles follow below.
    done : Signal
        The last row of the tile has ended.
    last_row : Value
        This row of the tile is the last one of the job.
    """

    def __init__(self, *, rows, cols):
        self.rows_left, self.cols_left = (
            Signal(16, reset_less=True, name=name) for name in ("rows_left", "cols_left")
        )
        self.width, self.height = Signal(range(cols)), Signal(range(rows))
        self.leftmost, self.more_right, self.more_below = Signal(), Signal(), Signal()
        self.done = Signal()
        self.last_row = (self.height == 0) & ~self.more_right & ~self.more_below


class RowState:
    """Registers of a row of the tile.

    Numbers of units and bytes are stored less one, except ``to_start`` and ``unit_bytes``.

    Parameters
    ----------
    row_bytes : int
        Bytes of the results in a full row of a tile.
    unit_sizes : sequence of int
        Sizes of a unit, in bytes.
    unit : `weft.hw.dma.writer.WriteUnit`
        The output of the generator, whose fields give the widths.

    Attributes
    ----------
    units, units_left : Signal
        Units of a row; units of the row from this one on.
    last_byte : Signal
        Bytes of results in this row.
    remaining : Signal
        Bytes of results from this unit to the end of the row; negative after the last one.
    to_start : Signal
        Distance in bytes from the last unit of a row to its first: negative.
    unit_index, last_index : Signal
        Index of the unit within its word of the result stream; index of the last unit of a word.
    unit_bytes : Signal
        Bytes of a unit.
    """

    def __init__(self, *, row_bytes, unit_sizes, unit):
        self.units, self.units_left = (
            Signal(range(row_bytes // min(unit_sizes)), name=name)
            for name in ("units", "units_left")
        )
        self.last_byte = Signal(range(row_bytes))
        self.remaining = Signal.like(unit.last_byte)
        self.to_start = Signal(signed(len(unit.last_byte)))
        self.unit_index, self.last_index = Signal.like(unit.index), Signal.like(unit.index)
        self.unit_bytes = Signal(range(max(unit_sizes) + 1))


class UnitAddress:
    """The address of a unit, and the registers that select the number that the next step adds.

    The selectors are registers: they are decoded once, a cycle before the step, and not again for
    each bit of the adder. One adder makes all steps. The steps to a tile, and to the address of a
    job, add to 0 instead of to ``addr``.

    ============ ==============================================================
    selector     the step adds
    ============ ==============================================================
    none         the bytes of a unit: to the next unit
    add_stride   ``stride``: one row down; at the start of a job this register
                 holds the address of the job
    to_row_start ``to_start``: back to the first unit of the row
    to_tile      the address of this tile
    add_tile     the bytes of a row of a tile: to the next tile on the right
    to_tile_row  the address of the next row of tiles
    ============ ==============================================================

    Attributes
    ----------
    addr, tile, tile_row, stride : Signal
        Addresses of the unit, of this tile and of the next row of tiles; bytes from a row of C to
        the next one. All without the low bits that are always 0.
    step : Signal
        Pulse: make the step.
    """

    def __init__(self, *, bits):
        self.addr, self.tile, self.tile_row, self.stride = (
            Signal(bits, reset_less=True, name=name)
            for name in ("addr", "tile", "tile_row", "stride")
        )
        self.step = Signal()
        self.add_stride, self.to_row_start, self.to_tile, self.add_tile, self.to_tile_row = (
            Signal(name=name)
            for name in ("add_stride", "to_row_start", "to_tile", "add_tile", "to_tile_row")
        )


OPERAND_ERROR = 16  # bit of word 3 that the engine adds: above the bits of N
QUEUE_WORDS = 512  # depth of the queue of descriptor words: more jobs than a core takes


class ResultAddressGenerator(wiring.Component):
    """Emits the write units of a job in the order of its results: one per cycle.

    ::

        for tile of C, row by row:
            for row of the tile:
                for chunk of the row:
                    for unit of the chunk:
                        unit at  address + row * stride + offset in the row

    For example C of 3 x 6 results of 4 bytes, on an array of 2 x 4 with 2 lanes; a unit is a
    chunk, 8 bytes. Each row of C is 32 bytes apart::

        tile 0:  0x00 0x08 | 0x20 0x28     tile 1:  0x10 | 0x30
        tile 2:  0x40 0x48                 tile 3:  0x50

    The core pads the last chunk of a row; the padding is not written. There is one cycle without
    a unit between two rows, and six more between two tiles. A job that the core ends early ends
    the burst in progress.

    The generator does not get jobs that keep their sums, because they have no results. If the core
    rejects or aborts such a job, it sends one result word for it. The tag of that word differs from
    the tag of the current job, so the current job goes on.

    Parameters
    ----------
    rows, cols, lanes : int
        As in Config.
    sizes, units : list of int
        Bytes of a result, and of a write unit: of sums, then of narrow results, if there are any.
    narrow_flags : `weft.commands.JobFlag`
        The flag that makes the results of a job narrow.
    data_bytes : int
        Bytes of a beat.
    target : str
        As in Config.

    Attributes
    ----------
    word, take : In
        Words 0, 1, 3, 8 and 9 of a job with results, 32 bits each; taken while ``take``. Bit
        `OPERAND_ERROR` of word 3: operands that were loaded before the job had a read error.
    operand_error : In
        1 bit; operands of the latest of those jobs had a read error.
    results : In, stream of `weft.hw.output.stream_packer.Result`
    beats : Out, ``valid`` and ``beat``, a `weft.hw.dma.writer.Beat`
    room : In
        1 bit; four beats can be taken.
    idle : Out
        1 bit; no job waits for results, and no result is in progress.
    no_job : Out
        1 bit; no job waits for results.
    """

    def __init__(self, *, rows, cols, lanes, sizes, units, narrow_flags, data_bytes, target):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.sizes = sizes
        self.units = units
        self.narrow_flags = narrow_flags
        self.data_bytes = data_bytes
        self.target = target
        super().__init__({
            "word": In(32), "take": In(1), "operand_error": In(1),
            "results": In(stream.Signature(Result(bytes_out=data_bytes))),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": In(1),
            "idle": Out(1), "no_job": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        row_bytes = self.cols * max(self.sizes)
        m.submodules.jobs = jobs = Fifo(
            32, depth=QUEUE_WORDS, target=self.target, checked=False
        )
        m.submodules.combiner = combiner = WriteCombiner(
            unit_sizes=self.units if len(set(self.units)) > 1 else self.units[:1],
            data_bytes=self.data_bytes,
            unit=WriteUnit(
                data_bytes=self.data_bytes, max_index=self.data_bytes // min(self.units),
                row_bytes=row_bytes,
            ),
        )
        job, tile = JobState(), TileState(rows=self.rows, cols=self.cols)
        row = RowState(row_bytes=row_bytes, unit_sizes=self.units, unit=combiner.units.unit)
        at = UnitAddress(bits=32 - ceil_log2(min(self.units)))
        result, valid, ends_job, done = self._receive(m, combiner)
        self._move(m, job, row, at)
        unit = combiner.units.unit
        m.d.comb += [
            jobs.i.payload.eq(self.word), jobs.i.valid.eq(self.take),
            unit.word.eq(result.data), unit.narrow.eq(job.narrow), unit.index.eq(row.unit_index),
            unit.addr.eq(at.addr << (32 - len(at.addr))), unit.last_byte.eq(row.remaining),
            unit.last_row.eq(tile.last_row),
            self.beats.eq(combiner.beats),
        ]

        advance = valid & self.room
        cancel = advance & ends_job
        own = ~cancel | (result.tag == job.tag)  # the result is of this job
        m.d.comb += combiner.operand_error.eq(
            own & (job.operand_error | (self.operand_error & ~jobs.o.valid))
        )
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [
                    self.no_job.eq(~jobs.o.valid),
                    self.idle.eq(self.no_job & ~valid & combiner.idle),
                ]
                m.d.sync += [
                    job.word_index.eq(0), row.unit_index.eq(0), at.addr.eq(0), at.add_stride.eq(1),
                    job.operand_error.eq(0),
                ]
                with m.If(jobs.o.valid):
                    m.next = "JOB"
                with m.Elif(cancel):  # of a job that was to keep its sums
                    m.d.comb += [done.eq(1), combiner.cancel.eq(1)]
            self._job_state(m, jobs, job, tile, at)
            self._tile_states(m, job, tile, row, at)
            self._unit_states(m, combiner, tile, row, at, done, (advance, cancel, own))
            self._next_states(m, tile, at)
        return m

    def _receive(self, m, combiner):
        """Hold a result word until it is done.

        Returns the word; whether it is valid; whether it ends its job early; and a signal to set
        when it is done.
        """
        result = Signal(self.results.payload.shape(), reset_less=True)
        valid, ends_job, done = Signal(), Signal(), Signal()
        m.d.comb += [
            self.results.ready.eq(~valid | done),
            combiner.tag.eq(result.tag), combiner.status.eq(result.status),
        ]
        with m.If(self.results.ready):
            m.d.sync += [
                valid.eq(self.results.valid), result.eq(self.results.payload),
                ends_job.eq(self.results.payload.last & self.results.payload.status.any()),
            ]
        return result, valid, ends_job, done

    def _move(self, m, job, row, at):
        """The adder of the address, and the numbers that depend on the size of a result."""
        cut = 32 - len(at.addr)  # low bits of addresses, which are 0
        tile_bytes = Signal(range(self.cols * max(self.sizes) + 1))  # of a row of a tile
        offset = Signal(signed(len(tile_bytes) + 1))
        next_addr = at.addr + (
            Mux(at.add_stride, at.stride, 0) | Mux(at.to_tile, at.tile, 0)
            | Mux(at.to_tile_row, at.tile_row, 0) | offset[cut:].as_signed()
        )
        with m.If(at.to_row_start):
            m.d.comb += offset.eq(row.to_start)
        with m.Elif(at.add_tile):
            m.d.comb += offset.eq(tile_bytes)
        with m.Elif(~at.add_stride & ~at.to_tile & ~at.to_tile_row):
            m.d.comb += offset.eq(row.unit_bytes)
        with m.If(at.step):
            m.d.sync += at.addr.eq(next_addr)
        with m.Switch(job.narrow):
            for n, (size, unit) in enumerate(zip(self.sizes, self.units, strict=True)):
                with m.Case(n):
                    m.d.comb += [
                        row.unit_bytes.eq(unit), row.last_index.eq(self.data_bytes // unit - 1),
                        tile_bytes.eq(self.cols * size),
                    ]

    def _job_state(self, m, jobs, job, tile, at):
        """The state that takes the words of a job."""
        word = jobs.o.payload
        with m.State("JOB"):
            m.d.comb += jobs.o.ready.eq(1)
            with m.If(jobs.o.valid):
                m.d.sync += [
                    job.word_index.eq(job.word_index + 1), at.stride.eq(word[32 - len(at.addr):])
                ]
                with m.Switch(job.word_index):
                    with m.Case(0):
                        m.d.sync += job.tag.eq(word[16:])
                    with m.Case(1):
                        m.d.sync += tile.rows_left.eq(word[16:] - 1)
                        if len(self.sizes) > 1:
                            m.d.sync += job.narrow.eq((word & self.narrow_flags).any())
                    with m.Case(2):
                        m.d.sync += [job.n.eq(word), job.operand_error.eq(word[OPERAND_ERROR])]
                    with m.Case(4):  # the address is in ``stride`` now, and is added to 0
                        m.d.comb += at.step.eq(1)
                        m.next = "TILE_ROW"

    def _tile_states(self, m, job, tile, row, at):
        """The states that start a row of tiles, and a tile."""
        with m.State("TILE_ROW"):
            m.d.sync += [
                tile.cols_left.eq(job.n - 1), tile.leftmost.eq(1), at.to_tile_row.eq(0)
            ]
            m.next = "TILE"
        with m.State("TILE"):
            more_right, more_below = tile.cols_left >= self.cols, tile.rows_left >= self.rows
            m.d.sync += [
                tile.more_right.eq(more_right),
                tile.width.eq(Mux(more_right, self.cols - 1, tile.cols_left)),
                tile.more_below.eq(more_below),
                tile.height.eq(Mux(more_below, self.rows - 1, tile.rows_left)),
                at.tile.eq(at.addr), at.add_tile.eq(0),
            ]
            m.next = "SIZES"
        with m.State("SIZES"):
            with m.Switch(job.narrow):
                for n, (size, unit) in enumerate(zip(self.sizes, self.units, strict=True)):
                    with m.Case(n):
                        per_chunk = self.lanes * size // unit
                        chunks = tile.width >> ceil_log2(self.lanes) << ceil_log2(per_chunk)
                        m.d.sync += [
                            row.units.eq(chunks | (per_chunk - 1)),
                            row.last_byte.eq((tile.width << ceil_log2(size)) | (size - 1)),
                            row.to_start.eq(-(chunks | (per_chunk - 1)) << ceil_log2(unit)),
                        ]
            m.next = "ROW"
        with m.State("ROW"):
            m.d.sync += [
                row.units_left.eq(row.units), row.remaining.eq(row.last_byte),
                at.add_stride.eq(row.units == 0),
            ]
            m.next = "UNIT"

    def _unit_states(self, m, combiner, tile, row, at, done, result):
        """The states that emit a unit, and that go to the next row of the tile."""
        advance, cancel, own = result
        with m.State("UNIT"):
            with m.If(cancel):
                m.d.comb += [done.eq(1), combiner.cancel.eq(1)]
                with m.If(own):
                    m.next = "IDLE"
            with m.Elif(advance):
                m.d.comb += [
                    combiner.units.valid.eq(1), at.step.eq(1),
                    done.eq((row.unit_index == row.last_index) | (at.add_stride & tile.last_row)),
                ]
                m.d.sync += [
                    row.units_left.eq(row.units_left - 1),
                    row.remaining.eq(row.remaining - row.unit_bytes),
                    row.unit_index.eq(Mux(done, 0, row.unit_index + 1)),
                    at.add_stride.eq(~at.add_stride & (row.units_left == 1)),
                ]
                with m.If(at.add_stride):  # the last unit of the row
                    m.d.sync += [
                        tile.height.eq(tile.height - 1), tile.done.eq(tile.height == 0),
                        at.to_row_start.eq(1),
                    ]
                    m.next = "NEXT_ROW"
        with m.State("NEXT_ROW"):
            m.d.comb += at.step.eq(1)
            m.d.sync += [
                at.to_row_start.eq(0), row.units_left.eq(row.units),
                row.remaining.eq(row.last_byte), at.add_stride.eq(row.units == 0),
            ]
            m.next = "UNIT"
            with m.If(tile.done):
                m.next = "TILE_DONE"
                with m.If(~tile.more_right & ~tile.more_below):
                    m.next = "IDLE"

    def _next_states(self, m, tile, at):
        """The states that go from a finished tile to the next one.

        After the last row of the leftmost tile, the address is where the next row of tiles starts.
        """
        with m.State("TILE_DONE"):
            m.d.sync += [tile.leftmost.eq(0), at.addr.eq(0), at.add_stride.eq(0)]
            with m.If(tile.leftmost):
                m.d.sync += at.tile_row.eq(at.addr)
            with m.If(tile.more_right):
                m.d.sync += at.to_tile.eq(1)
                m.next = "RIGHT"
            with m.Else():
                m.d.sync += [
                    tile.rows_left.eq(tile.rows_left - self.rows), at.to_tile_row.eq(1)
                ]
                m.next = "DOWN"
        with m.State("RIGHT"):
            m.d.comb += at.step.eq(1)
            m.d.sync += [
                tile.cols_left.eq(tile.cols_left - self.cols), at.to_tile.eq(0), at.add_tile.eq(1)
            ]
            m.next = "ADD_TILE"
        with m.State("ADD_TILE"):
            m.d.comb += at.step.eq(1)
            m.next = "TILE"
        with m.State("DOWN"):
            m.d.comb += at.step.eq(1)
            m.next = "TILE_ROW"
