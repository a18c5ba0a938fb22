"""The registers of the result address generator: job, tile, row and address of the next unit.

A unit is a part of a result word that is written to memory at an address of its own.
"""

from amaranth.hdl import Signal, signed

__all__ = ["JOB_WORDS", "JobState", "RowState", "TileState", "UnitAddress"]

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
    unit : `weft.hw.dma.write_combiner.WriteUnit`
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
