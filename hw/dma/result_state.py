"""The registers of the result address generator: job, tile, row and address of the next unit."""

from amaranth.hdl import Signal, signed

__all__ = ["JOB_WORDS", "JobState", "RowState", "TileState", "UnitAddress"]

JOB_WORDS = 5  # descriptor words of each job


class JobState:
    """Registers with the fields of the job.

    Attributes
    ----------
    field : Signal
        Index of the next descriptor word.
    tag, narrow, n : Signal
        The job's tag; its results are narrow; its N.
    operand_error : Signal
        Operands that were loaded before the job were read with an error.
    """

    def __init__(self):
        self.field = Signal(range(JOB_WORDS))
        self.tag = Signal(16, reset_less=True)
        self.narrow = Signal()
        self.n = Signal(16, reset_less=True, name="n")
        self.operand_error = Signal()


class TileState:
    """Registers of the tile. All numbers are less one.

    Attributes
    ----------
    rows_left, cols_left : Signal
        Rows and columns of C from this tile on.
    width, height : Signal
        Columns of the tile; its rows from this row on.
    first_in_row : Signal
        The tile is the leftmost one.
    more_right, more_below : Signal
        Tiles follow to the right; below.
    done : Signal
        The row that has ended was the last one of the tile.
    last_row : Value
        The row is the last one of the job.
    """

    def __init__(self, *, rows, cols):
        self.rows_left, self.cols_left = (
            Signal(16, reset_less=True, name=name) for name in ("rows_left", "cols_left")
        )
        self.width, self.height = Signal(range(cols)), Signal(range(rows))
        self.first_in_row, self.more_right, self.more_below = Signal(), Signal(), Signal()
        self.done = Signal()
        self.last_row = (self.height == 0) & ~self.more_right & ~self.more_below


class RowState:
    """Registers of a row of the tile. All numbers of units and bytes are less one.

    Attributes
    ----------
    units, units_left : Signal
        Units of a row; units of the row from this one on.
    last_byte : Signal
        Bytes of results in a row.
    remaining : Signal
        Bytes of results from this unit on.
    to_start : Signal
        Distance in bytes from the last unit of a row to its first: negative.
    unit_index, last_index : Signal
        Index of the unit within its result word; of the last unit of a word.
    unit_bytes : Signal
        Bytes of a unit; this number is not less one.
    """

    def __init__(self, *, row_bytes, units, unit):
        self.units, self.units_left = (
            Signal(range(row_bytes // min(units)), name=name) for name in ("units", "units_left")
        )
        self.last_byte = Signal(range(row_bytes))
        self.remaining = Signal.like(unit.last_byte)
        self.to_start = Signal(signed(len(unit.last_byte)))
        self.unit_index, self.last_index = Signal.like(unit.index), Signal.like(unit.index)
        self.unit_bytes = Signal(range(max(units) + 1))


class UnitAddress:
    """The address of a unit, and the registers that choose what the next step adds to it.

    The selectors are registers, so that they are not decoded from the state for each bit. One
    adder makes all moves; a move to another tile starts from address 0.

    ============ ==============================================================
    selector     the step adds
    ============ ==============================================================
    none         the bytes of a unit: to the next unit
    add_stride   the stride: from the last unit of a row to the next row; from
                 0 to the address of the job
    to_row_start ``to_start``: back to the first unit of the row
    to_tile      the address of this tile
    add_tile     the bytes of a row of a tile: to the next tile on the right
    to_tile_row  the address of the next row of tiles
    ============ ==============================================================

    Attributes
    ----------
    addr, tile, tile_row, stride : Signal
        Of the unit, of this tile, of the next row of tiles; the stride. Without the low bits,
        which are 0 in all of them.
    step : Signal
        Pulse: make the move.
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
