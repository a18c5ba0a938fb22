"""The systolic array, and its element: operands move, sums stay, results leave at the south."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["PeControl", "ProcessingElement", "ResultChain", "SystolicArray"]

class ResultChain(wiring.Component):
    """A shift register of ``length`` values: ``o`` is the value that came ``length`` moves ago.

    With ``lut_ram`` the values stay where they are, in a ring of LUT RAM, and a counter moves. LUT
    RAM holds 16 bits in a LUT, so the ring takes fewer cells than ``length`` flip-flops for each
    bit. No reset clears it: the first ``length`` values of ``o`` after a reset are undefined.

    Parameters
    ----------
    shape : shape
    length : int
    lut_ram : str, optional
        Value of the attribute ``ram_style`` that selects LUT RAM. None: flip-flops.

    Attributes
    ----------
    move : In, 1 bit
        Take ``i``.
    i, o : In and Out, ``shape``
    """

    def __init__(self, *, shape, length, lut_ram=None):
        self.length = length
        self.lut_ram = lut_ram if length > 1 else None
        super().__init__({"move": In(1), "i": In(shape), "o": Out(shape)})

    def elaborate(self, platform):
        m = Module()
        if self.lut_ram is None:
            self._flip_flops(m)
        else:
            self._ring(m)
        return m

    def _flip_flops(self, m):
        previous = self.i
        for n in range(self.length):
            register = Signal.like(self.i, name=f"chain_{n}")
            with m.If(self.move):
                m.d.sync += register.eq(previous)
            previous = register
        m.d.comb += self.o.eq(previous)

    def _ring(self, m):
        m.submodules.ring = ring = Memory(
            shape=self.i.shape(), depth=self.length, init=[],
            attrs={"no_rw_check": 1, "ram_style": self.lut_ram},
        )
        oldest = Signal(ceil_log2(self.length))
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(oldest), self.o.eq(read.data),
            write.addr.eq(oldest), write.data.eq(self.i), write.en.eq(self.move),
        ]
        with m.If(self.move):
            m.d.sync += oldest.eq(Mux(oldest == self.length - 1, 0, oldest + 1))


class PeControl(data.Struct):
    """Control bits of a PE.

    ``en`` comes with the operands, ``clear`` ``latency - SLOTS`` cycles after its step, and
    ``capture`` ``latency`` cycles after its step. Both numbers belong to the MAC cell
    (`weft.hw.arith.mac.Mac`).
    """

    en: 1
    clear: 1
    capture: 1


class ProcessingElement(wiring.Component):
    """A MAC cell, with result registers that hold finished sums while the cell computes new sums.

    The PE has SLOTS stages of a shift register that runs down the column (`ResultChain`).
    ``capture`` shifts in the sum of the MAC cell; ``shift`` shifts in the value of the PE above.

    If the MAC cell is folded, its sums are the shift register: no sum accumulates while the
    results move, and ``clear`` and ``capture`` have no effect. The PE in row p from the top is
    shifted p + 1 times, so its sum is then the 0 that enters at the top.

    Parameters
    ----------
    mac : Mac
        The MAC cell.
    lut_ram : str, optional
        The sums of several SLOTS wait in LUT RAM: its value of the attribute ``ram_style``.

    Attributes
    ----------
    a, b : In, operands in the shape of the MAC cell
    control : In, `PeControl`
    preload : In, 1 bit; only if the MAC cell has a START
        The sum starts from ``init``.
    init : In, shape START of the MAC cell; only if it has one
    shift : In, 1 bit
        Moves the results of the column down by one register.
    above : In, shape ACC
        The result of the PE above.
    below : Out, shape ACC
        The result for the PE below.
    """

    def __init__(self, *, mac, lut_ram=None):
        self.mac = mac
        self.lut_ram = lut_ram
        start = {} if mac.START is None else {"preload": In(1), "init": In(mac.START)}
        super().__init__({
            "a": In(mac.a.shape()),
            "b": In(mac.b.shape()),
            "control": In(PeControl),
            **start,
            "shift": In(1),
            "above": In(mac.ACC),
            "below": Out(mac.ACC),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac
        m.d.comb += [mac.a.eq(self.a), mac.b.eq(self.b), mac.en.eq(self.control.en)]
        if mac.START is not None:
            m.d.comb += [mac.preload.eq(self.preload), mac.init.eq(self.init)]
        if mac.folded:
            m.d.comb += [
                mac.shift.eq(self.shift), mac.above.eq(self.above), self.below.eq(mac.sum),
            ]
            return m
        m.submodules.chain = chain = ResultChain(
            shape=mac.ACC, length=mac.SLOTS, lut_ram=self.lut_ram
        )
        m.d.comb += [
            mac.clear.eq(self.control.clear),
            chain.move.eq(self.control.capture | self.shift),
            chain.i.eq(Mux(self.control.capture, mac.sum, self.above)),
            self.below.eq(chain.o),
        ]
        return m


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

    ``shift[p]`` moves a result from the PE above, of its chain, into row p; in column c it acts
    ``c // hop`` cycles later. `weft.hw.array.edges.Drain` generates it.

    Parameters
    ----------
    rows, cols, hop : int
    mac : callable
        Returns the MAC cell for a column number; called once for each PE.
    lut_ram : str, optional
        As for a `weft.hw.array.systolic.ProcessingElement`.
    chains : int
        Rows of the tile that leave in a cycle: row p of the tile moves down in chain ``p %
        chains``, over the rows of the other chains. It divides ``rows``. With more than 1, ``hop``
        must be a multiple of it: else a sum would be captured before the sum below has moved.

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
    south : Out, ``chains * cols`` of (``valid``, ``sum``)
        One row of each chain in each cycle, chain by chain; column c is ``c // hop`` cycles late.
    """

    def __init__(self, *, rows, cols, hop, mac, lut_ram=None, chains=1):
        self.rows = rows
        self.chains = chains
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
            "south": Out(data.ArrayLayout(self.South, chains * cols)),
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
        above = [[Const(0, self._macs[0][0].ACC)] * self.cols for _ in range(self.chains)]
        for p, macs in enumerate(self._macs):
            if p and p % self.hop == 0:
                b = [delay(value) for value in b]
                init = [delay(value) for value in init]
            if p % self.hop == 0:
                control = list(hops(row_control[p], self.cols))
            row = self.rows - 1 - p
            chain = above[row % self.chains]
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
                    pe.above.eq(chain[c]),
                ]
                if self.starts:
                    m.d.comb += [pe.preload.eq(preload[c]), pe.init.eq(init[c])]
                chain[c] = pe.below
        for n, chain in enumerate(above):
            for c in range(self.cols):
                south = self.south[n * self.cols + c]
                m.d.comb += [south.valid.eq(valid[c]), south.sum.eq(chain[c])]
        return m
