"""The output-stationary array: operands flow through it, sums stay, results leave at the foot."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.array.element import PeControl, ProcessingElement

__all__ = ["SystolicArray"]


class SystolicArray(wiring.Component):
    """``rows`` x ``cols`` PEs; C[i, j] grows in one while row i of A and column j of B pass it.

    A enters from the left, B from the top, and moves ``hop`` PEs a cycle: a block of ``hop`` x
    ``hop`` PEs shares its operand registers. Row 0 of a tile is the lowest row of PEs, so that it
    drains first. The caller skews: PE row p (from the top) and column c work ``p // hop + c //
    hop`` cycles after the top left one. ``control`` is given once, with the first operands; the
    array skews it itself.

    ``shift[p]`` moves a result from the PE above into row p, in column c ``c // hop`` cycles
    later; `Drain` says when. ``valid`` is high while results are at the foot.

    Parameters
    ----------
    rows, cols, hop : int
    mac : callable
        Makes a leaf of the column that it is given: called once a PE.

    Attributes
    ----------
    a : In, ``rows`` x ``depth`` values, row of the tile first; skewed
    b : In, ``cols`` x ``depth`` values; skewed
    control : In, `PeControl`; unskewed
    preload : In, a bit a row of the tile; skewed as A is. Where the leaf has a START
    init : In, ``cols`` values; skewed as B is, and likewise
        Row i of the tile, where told to, starts its sums from what comes by.
    shift : In, a bit a row, from the top
    valid : In
    foot : Out, ``cols`` of (``valid``, ``sum``)
        Results, a row of the tile at a time, column c ``c // hop`` cycles late.
    """

    def __init__(self, *, rows, cols, hop, mac):
        self.rows = rows
        self.cols = cols
        self.hop = hop
        self._grid = [[mac(col) for col in range(cols)] for _ in range(rows)]
        leaf = self._grid[0][0]
        self.starts = leaf.START is not None
        start = {}
        if self.starts:
            start = {"preload": In(rows), "init": In(data.ArrayLayout(leaf.START, cols))}
        self.Foot = data.StructLayout({"valid": 1, "sum": leaf.ACC})
        super().__init__({
            "a": In(data.ArrayLayout(leaf.a.shape(), rows)),
            "b": In(data.ArrayLayout(leaf.b.shape(), cols)),
            "control": In(PeControl),
            **start,
            "shift": In(rows),
            "valid": In(1),
            "foot": Out(data.ArrayLayout(self.Foot, cols)),
        })

    def elaborate(self, platform):
        m = Module()

        def later(value):
            register = Signal.like(value, name="hop")
            m.d.sync += register.eq(value)
            return register

        def along(value, count):
            """``value`` as each of ``count`` PEs in a line sees it."""
            for index in range(count):
                if index and index % self.hop == 0:
                    value = later(value)
                yield value

        valid = list(along(self.valid, self.cols))
        down = list(along(self.control, self.rows))
        b = [self.b[c] for c in range(self.cols)]
        init = [self.init[c] for c in range(self.cols)] if self.starts else []
        above = [Const(0, self._grid[0][0].ACC)] * self.cols
        for p, macs in enumerate(self._grid):
            if p and p % self.hop == 0:
                b = [later(value) for value in b]
                init = [later(value) for value in init]
            if p % self.hop == 0:
                control = list(along(down[p], self.cols))
            row = self.rows - 1 - p
            a = along(self.a[row], self.cols)
            shift = along(self.shift[p], self.cols)
            if self.starts:
                preload = list(along(self.preload[row], self.cols))
            for c, (mac, value, move) in enumerate(zip(macs, a, shift, strict=True)):
                m.submodules[f"pe_{p}_{c}"] = pe = ProcessingElement(mac=mac)
                m.d.comb += [
                    pe.a.eq(value),
                    pe.b.eq(b[c]),
                    pe.control.eq(control[c]),
                    pe.shift.eq(move),
                    pe.above.eq(above[c]),
                ]
                if self.starts:
                    m.d.comb += [pe.preload.eq(preload[c]), pe.init.eq(init[c])]
                above[c] = pe.below
        for c in range(self.cols):
            m.d.comb += [self.foot[c].valid.eq(valid[c]), self.foot[c].sum.eq(above[c])]
        return m
