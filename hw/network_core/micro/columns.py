"""The array of a micro core: its columns, and the steps of a tile."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40 import registered
from weft.hw.network_core.interface import MemoryWindow

__all__ = ["ArrayColumns", "BlockAccumulator", "LogicColumn", "StepUnit", "TapFields"]


class BlockAccumulator(wiring.Component):
    """``total <= total + a * b``, modulo 2^32, all of it in an SB_MAC16.

    Attributes
    ----------
    a, b : In, signed 8 bits
        The factors; the block registers them.
    add : In, 1 bit
        The registered factors are multiplied, and their product is added.
    clear : In, 1 bit
        The total is 0 in the next cycle.
    total : Out, 32 bits

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    a: In(signed(8))
    b: In(signed(8))
    add: In(1)
    clear: In(1)
    total: Out(32)

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            product = registered(m, self.a) * registered(m, self.b)
            _accumulate(m, self, product)
            return m
        reset = ResetSignal(allow_reset_less=True)
        halves = {}
        for half, carry in (("TOP", 2), ("BOT", 0)):
            halves |= {
                f"p_{half}_8x8_MULT_REG": Const(0, 1),
                f"p_{half}OUTPUT_SELECT": Const(1, 2),  # the register behind the adder
                f"p_{half}ADDSUB_LOWERINPUT": Const(2, 2),  # adds the product of 16 x 16 bits
                f"p_{half}ADDSUB_UPPERINPUT": Const(0, 1),  # to the register
                f"p_{half}ADDSUB_CARRYSELECT": Const(carry, 2),  # 2: of the lower half
                f"i_ADDSUB{half}": Const(0, 1),
                f"i_OHOLD{half}": ~(self.add | self.clear),
                f"i_OLOAD{half}": self.clear,  # loads C and D: 0
                **{f"i_{name}{half}": reset for name in ("IRST", "ORST")},
            }
        m.submodules.block = Instance(
            "SB_MAC16", i_CLK=ClockSignal(), i_CE=Const(1, 1),
            **{f"p_{name}_REG": Const(name in "AB", 1) for name in "ABCD"},
            **{f"p_PIPELINE_16x16_MULT_REG{n}": Const(0, 1) for n in (1, 2)},
            **{f"p_{name}": Const(1, 1) for name in ("A_SIGNED", "B_SIGNED")},
            p_MODE_8x8=Const(0, 1), p_NEG_TRIGGER=Const(0, 1), **halves,
            i_A=_wide(self.a), i_B=_wide(self.b), i_C=Const(0, 16), i_D=Const(0, 16),
            o_O=self.total,
            **{f"i_{name}HOLD": Const(0, 1) for name in "ABCD"},
            **{f"i_{name}": Const(0, 1) for name in ("CI", "ACCUMCI", "SIGNEXTIN")},
        )
        return m


def _accumulate(m, unit, value):
    """Add a value to the total of a unit."""
    with m.If(unit.clear):
        m.d.sync += unit.total.eq(0)
    with m.Elif(unit.add):
        m.d.sync += unit.total.eq(unit.total + value)


def _wide(value):
    """A signed byte as 16 bits."""
    return Cat(value, value[-1].replicate(8))


class LogicColumn(wiring.Component):
    """``total <= total + a[0] * b[0] + a[1] * b[1]``, modulo 2^32, in logic cells.

    Attributes
    ----------
    a, b : In, 2 signed values of 8 bits
        The factors, which are registered first.
    add : In, 1 bit
        The products of the registered factors are added.
    clear : In, 1 bit
        The total is 0 in the next cycle.
    total : Out, 32 bits
    """

    a: In(data.ArrayLayout(signed(8), 2))
    b: In(data.ArrayLayout(signed(8), 2))
    add: In(1)
    clear: In(1)
    total: Out(32)

    def elaborate(self, platform):
        m = Module()
        a, b = ([registered(m, value) for value in values] for values in (self.a, self.b))
        _accumulate(m, self, a[0] * b[0] + a[1] * b[1])
        return m


class ArrayColumns(wiring.Component):
    """The sums of a tile: ``sums[n] = sum(a * b[n])`` over its steps.

    A step has two cycles. Each multiplies two bytes of A with two bytes of B of each column.

    Parameters
    ----------
    cols : int
    in_blocks : bool
        DSP blocks multiply and accumulate.

    Attributes
    ----------
    vector : In, 32 bits
        The vector of A of a step, valid with ``first_half``.
    outside : In, 8 bits; is_outside : In, 1 bit
        The value of all bytes of A, if the tap lies outside the map.
    b : In, 16 bits for each column
        A half of a word, valid with each half.
    first_half, second_half, ends : In, 1 bit each
        As of `weft.hw.network_core.micro.columns.StepUnit`.
    clear : In, 1 bit
        All sums are 0.
    captured : Out, 1 bit
        Pulse: ``sums`` has the sums of the next tile from the next cycle on.
    select : In
        A column.
    sums : Out, 32 bits
        Of the selected column.
    """

    def __init__(self, *, cols, in_blocks):
        self.cols = cols
        self.in_blocks = in_blocks
        super().__init__({
            "vector": In(32), "outside": In(8), "is_outside": In(1),
            "b": In(data.ArrayLayout(16, cols)), "first_half": In(1), "second_half": In(1),
            "ends": In(1), "clear": In(1), "captured": Out(1), "select": In(range(cols)),
            "sums": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        a, high, operands = Signal(32), Signal(16), Signal(16)
        adds, ends = Signal(), Signal(3)
        m.d.comb += [
            a.eq(Mux(self.is_outside, self.outside.replicate(4), self.vector)),
            operands.eq(Mux(self.first_half, a, high)),
            # The operands are registered; both halves follow, and then the sums are complete.
            self.captured.eq(ends[-1]),
        ]
        m.d.sync += [
            high.eq(a[16:]), adds.eq(self.first_half | self.second_half),
            ends.eq((ends << 1) | self.ends),
        ]
        held = []
        for column in range(self.cols):
            total = self._total(m, column, operands, adds)
            held.append(Signal(32, name=f"held_{column}", reset_less=True))
            with m.If(self.captured):
                m.d.sync += held[-1].eq(total)
        with m.Switch(self.select):
            for column, sums in enumerate(held):
                with m.Case(column):
                    m.d.comb += self.sums.eq(sums)
        return m

    def _total(self, m, column, operands, adds):
        """The sum of a column so far."""
        b, clear = self.b[column], self.captured | self.clear
        if not self.in_blocks:
            m.submodules[f"column_{column}"] = unit = LogicColumn()
            m.d.comb += [unit.a.eq(operands), unit.b.eq(b), unit.add.eq(adds), unit.clear.eq(clear)]
            return unit.total
        totals = []
        for byte in range(2):
            m.submodules[f"mac_{column}_{byte}"] = mac = BlockAccumulator()
            m.d.comb += [
                mac.a.eq(operands.word_select(byte, 8)), mac.b.eq(b.word_select(byte, 8)),
                mac.add.eq(adds), mac.clear.eq(clear),
            ]
            totals.append(mac.total)
        return totals[0] + totals[1]


class TapFields(data.Struct):
    """The fields of a job that its steps need, as in `weft.network_core.descriptors.ListJob`."""

    kernel_height: 8
    kernel_width: 8
    tap_vectors: 16
    in_height: 16
    in_width: 16
    dilation_y: 8
    dilation_x: 8
    tap_x_step: 16
    tap_y_step: 16


class StepUnit(wiring.Component):
    """``for ky: for kx: for c in tap_vectors``, from the first tap of a pixel on.

    A step reads a vector in its first cycle, and a half of a word of B in each of both. The last
    step of a tile waits for ``may_end``. A tile with n steps takes 2 n + 1 cycles at least.

    Parameters
    ----------
    b_words : int

    Attributes
    ----------
    fields : In, `TapFields`
    x, y, origin, b_word : In
        Place and vector of the first tap, and the first word of B: taken with ``start``.
    start : In, 1 bit
        Pulse, while ``idle``.
    idle : Out, 1 bit
    may_end : In, 1 bit
        The columns will be free for the sums of the tile.
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    read : Out, 1 bit
        The vector at ``address`` is read in this cycle. Its data are not used if the tap lies
        outside the map, or after an ``address_error``.
    address : Out, 16 bits
    b_address : Out
        The half of a word of B that the next cycle needs.
    first_half, second_half : Out, 1 bit each
        The halves of the vector are the operands of the next cycle.
    outside : Out, 1 bit
        With ``first_half``: the tap lies outside the map.
    ends : Out, 1 bit
        Pulse, in the cycle after the one of the last step.
    address_error : Out, 1 bit
        Pulse: a vector inside the map lies beyond the window.
    """

    def __init__(self, *, b_words):
        bits = (b_words - 1).bit_length()
        super().__init__({
            "fields": In(TapFields), "x": In(16), "y": In(16), "origin": In(16),
            "b_word": In(bits), "start": In(1), "idle": Out(1, init=1), "may_end": In(1),
            "window": In(MemoryWindow(16)), "read": Out(1), "address": Out(16),
            "b_address": Out(bits + 1), "first_half": Out(1), "second_half": Out(1),
            "outside": Out(1), "ends": Out(1), "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        fields, address = self.fields, self.address
        x, y, first_x, word = (Signal.like(s) for s in (self.x, self.y, self.x, self.b_word))
        vectors_left, taps_left, rows_left = Signal(16), Signal(8), Signal(8)
        # All of these are known a cycle before the step, since it changes two cycles before.
        vector_last, tap_last, last = Signal(), Signal(), Signal()
        step, inside, allowed, is_last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_last.eq((vectors_left == 1) & (taps_left == 1) & (rows_left == 1)),
            self.read.eq(step),
            self.address_error.eq(step & inside & ~allowed),
            self.b_address.eq((word << 1) | self.first_half),
        ]
        m.d.sync += [
            vector_last.eq(vectors_left == 1), tap_last.eq(taps_left == 1), last.eq(is_last),
            inside.eq((x < fields.in_width) & (y < fields.in_height)),
            allowed.eq((address >= self.window.base) & (address < self.window.limit)),
            step.eq(~self.idle & ~step & (self.may_end | ~is_last)),
        ]
        m.d.sync += [
            self.first_half.eq(step), self.second_half.eq(self.first_half),
            self.outside.eq(~inside), self.ends.eq(step & last),
        ]
        with m.If(self.first_half):
            m.d.sync += word.eq(word + 1)
        to_next = Mux(tap_last, fields.tap_y_step, fields.tap_x_step)
        with m.If(step):
            m.d.sync += [
                self.idle.eq(last), address.eq(address + Mux(vector_last, to_next, 1)),
                vectors_left.eq(Mux(vector_last, fields.tap_vectors, vectors_left - 1)),
            ]
            with m.If(vector_last):
                m.d.sync += [x.eq(x + fields.dilation_x), taps_left.eq(taps_left - 1)]
                with m.If(tap_last):
                    m.d.sync += [
                        x.eq(first_x), y.eq(y + fields.dilation_y),
                        taps_left.eq(fields.kernel_width), rows_left.eq(rows_left - 1),
                    ]
        with m.If(self.start):
            m.d.sync += [
                self.idle.eq(0), address.eq(self.origin), x.eq(self.x),
                first_x.eq(self.x), y.eq(self.y), word.eq(self.b_word),
                vectors_left.eq(fields.tap_vectors), taps_left.eq(fields.kernel_width),
                rows_left.eq(fields.kernel_height),
            ]
        return m
