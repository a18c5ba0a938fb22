"""The output-stationary systolic array: operands move, sums stay, results leave at the south."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.array.element import PeControl, ProcessingElement

__all__ = ["SystolicArray"]


class _Control(data.Struct):
    """`PeControl` as the registers between the PEs hold it.

    ``idle`` is the inverse of ``en``. Multipliers reset their operands while it is high, so a PE
    needs no inverter.
    """

    idle: 1 = 1
    clear: 1
    capture: 1


class SystolicArray(wiring.Component):
    """``C[i, j] += A[i, k] * B[k, j]`` in a grid of ``rows`` x ``cols`` processing elements.

    A enters at the left edge, B at the top edge. Operands move ``hop`` PEs a cycle: each block of
    ``hop`` x ``hop`` PEs shares its operand registers. Row 0 of a tile is the lowest row of PEs,
    so it drains first. The PE in row p (from the top) and column c works ``p // hop + c // hop``
    cycles after the PE in the top left corner. The caller skews the operands; the array skews
    ``control``, which arrives once, with the first operands.

    ``shift[p]`` moves a result from the PE above into row p; in column c it acts ``c // hop``
    cycles later. `weft.hw.array.drain.Drain` generates it.

    Parameters
    ----------
    rows, cols, hop : int
    mac : callable
        Returns the MAC cell for a column number; called once for each PE.
    lut_ram : str, optional
        As for a `weft.hw.array.element.ProcessingElement`.

    Attributes
    ----------
    a : In, ``rows`` x ``depth`` values, row of the tile first
        Skewed.
    b : In, ``cols`` x ``depth`` values
        Skewed.
    control : In, `PeControl`
        Not skewed.
    preload : In, 1 bit a row of the tile; only if the MAC cell has a START
        The row starts its sums from ``init``. Skewed as ``a``.
    init : In, ``cols`` values; only if the MAC cell has a START
        Skewed as ``b``.
    shift : In, 1 bit a row, from the top
    valid : In, 1 bit
        Results are at the south edge.
    south : Out, ``cols`` of (``valid``, ``sum``)
        One row of the tile in each cycle; column c is ``c // hop`` cycles late.
    """

    def __init__(self, *, rows, cols, hop, mac, lut_ram=None):
        self.rows = rows
        self.cols = cols
        self.hop = hop
        self.lut_ram = lut_ram
        self._macs = [[mac(col) for col in range(cols)] for _ in range(rows)]
        cell = self._macs[0][0]
        self.starts = cell.START is not None
        start = {}
        if self.starts:
            start = {"preload": In(rows), "init": In(data.ArrayLayout(cell.START, cols))}
        self.South = data.StructLayout({"valid": 1, "sum": cell.ACC})
        super().__init__({
            "a": In(data.ArrayLayout(cell.a.shape(), rows)),
            "b": In(data.ArrayLayout(cell.b.shape(), cols)),
            "control": In(PeControl),
            **start,
            "shift": In(rows),
            "valid": In(1),
            "south": Out(data.ArrayLayout(self.South, cols)),
        })

    def elaborate(self, platform):
        m = Module()

        def delay(value):
            register = Signal.like(value, name="hop")
            m.d.sync += register.eq(value)
            return register

        def hops(value, count):
            """``value`` at each of ``count`` PEs in a line: a register every ``hop`` PEs."""
            for index in range(count):
                if index and index % self.hop == 0:
                    value = delay(value)
                yield value

        valid = list(hops(self.valid, self.cols))
        first_control = Signal(_Control)
        m.d.comb += [
            first_control.idle.eq(~self.control.en),
            first_control.clear.eq(self.control.clear),
            first_control.capture.eq(self.control.capture),
        ]
        row_control = list(hops(first_control, self.rows))
        b = [self.b[c] for c in range(self.cols)]
        init = [self.init[c] for c in range(self.cols)] if self.starts else []
        above = [Const(0, self._macs[0][0].ACC)] * self.cols
        for p, macs in enumerate(self._macs):
            if p and p % self.hop == 0:
                b = [delay(value) for value in b]
                init = [delay(value) for value in init]
            if p % self.hop == 0:
                control = list(hops(row_control[p], self.cols))
            row = self.rows - 1 - p
            a = hops(self.a[row], self.cols)
            shift = hops(self.shift[p], self.cols)
            if self.starts:
                preload = list(hops(self.preload[row], self.cols))
            for c, (mac, pe_a, pe_shift) in enumerate(zip(macs, a, shift, strict=True)):
                m.submodules[f"pe_{p}_{c}"] = pe = ProcessingElement(
                    mac=mac, lut_ram=self.lut_ram
                )
                m.d.comb += [
                    pe.a.eq(pe_a),
                    pe.b.eq(b[c]),
                    pe.control.en.eq(~control[c].idle),
                    pe.control.clear.eq(control[c].clear),
                    pe.control.capture.eq(control[c].capture),
                    pe.shift.eq(pe_shift),
                    pe.above.eq(above[c]),
                ]
                if self.starts:
                    m.d.comb += [pe.preload.eq(preload[c]), pe.init.eq(init[c])]
                above[c] = pe.below
        for c in range(self.cols):
            m.d.comb += [self.south[c].valid.eq(valid[c]), self.south[c].sum.eq(above[c])]
        return m
