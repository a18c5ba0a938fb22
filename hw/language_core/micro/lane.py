"""The lane of a core with a microprogram, what it reduces of its results, and its scale."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.arith.ice40 import DspMultiplier
from weft.hw.buffers.bank import Bank
from weft.hw.delay import pipeline
from weft.hw.language_core.lanes import PIECES, clamp, shifted
from weft.hw.language_core.micro.layouts import InstructionFields
from weft.language_core.descriptors import TOTAL_BITS
from weft.language_core.microcode import (
    LANE_TABLE,
    LANE_VALUE,
    NUMBER_BITS,
    MicroReduction,
    Operation,
    Setup,
    Table,
)

__all__ = ["TABLE_ENTRIES", "Lane", "MicroReductions", "Normaliser"]

TABLE_ENTRIES = len(Table) * PIECES
_EXP_SHIFT = 4  # from a difference of scores, with 8 bits after the point, to 16 of an argument


class Normaliser(wiring.Component):
    """The argument of a table from a number, with 8 places or one a cycle.

    Attributes
    ----------
    start : In, 1 bit
        Pulse; the argument is valid `weft.language_core.microcode.NORMALISED` + 2 cycles later.
    number : In, 40 bits
        1 or more; with ``start``.
    root : In, 1 bit
        With ``start``: the argument is for a root.
    argument : Out, 16 bits
    exponent : Out, 6 bits
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "number": In(NUMBER_BITS), "root": In(1), "argument": Out(16),
            "exponent": Out(6),
        })

    def elaborate(self, platform):
        m = Module()
        number, k = Signal(NUMBER_BITS, reset_less=True), Signal(6, reset_less=True)
        root = Signal(reset_less=True)
        with m.If(self.start):
            m.d.sync += [number.eq(self.number), k.eq(NUMBER_BITS - 1), root.eq(self.root)]
        with m.Elif(~number[-8:].any()):
            m.d.sync += [number.eq(number << 8), k.eq(k - 8)]
        with m.Elif(~number[-1]):
            m.d.sync += [number.eq(number << 1), k.eq(k - 1)]
        fraction = number[-17:-1]
        m.d.comb += [
            self.argument.eq(Mux(root, Cat(fraction[1:], k[0]), fraction)),
            self.exponent.eq(Mux(root, k >> 1, k)),
        ]
        return m


class Lane(wiring.Component):
    """One value a cycle through a table, or a product, a rounding shift and saturation.

    ``result <= saturate(residual + saturate((value * multiplier + 2^(e - 1)) >> e))``, or an entry
    of a table as of `weft.hw.language_core.lanes.Lanes`. Results leave LANE_OUT - LANE_VALUE cycles
    after their values.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    setup : In, fields of `weft.language_core.microcode.Setup`
        Stable while values are on their way.
    value : In, int32
    pivot : In, int16
    multiplier : In, 16 bits
        With ``value``.
    exponent : In, 6 bits
        Added to the shift of lanes that are ``scaled``.
    argument : In, 16 bits
        Of the tables of reciprocals and roots, with ``value``.
    residual : In, int16
        LANE_TABLE - LANE_VALUE cycles after ``value``.
    beyond : In, 1 bit
        At the same time: an entry of a table becomes 0.
    result : Out, 16 bits
    table_write, table_entry, table_base, table_slope : In 1 bit, 11 bits, 16 bits, 16 bits
        Pulse, while no values are on their way: an entry. Those of `Table` n start at 512 * n.
    """

    def __init__(self, *, target):
        self.target = target
        super().__init__({
            "setup": In(InstructionFields(Setup)), "value": In(signed(32)),
            "pivot": In(signed(16)), "multiplier": In(16), "exponent": In(6), "argument": In(16),
            "residual": In(signed(16)), "beyond": In(1), "result": Out(16),
            "table_write": In(1), "table_entry": In(ceil_log2(TABLE_ENTRIES)),
            "table_base": In(16), "table_slope": In(16),
        })

    def elaborate(self, platform):
        m = Module()
        setup = self.setup
        entry = self._entry(m)
        factor = Signal(signed(32))
        below = Signal(signed(17))
        m.d.comb += [
            below.eq(self.value[:16].as_signed() - self.pivot),
            factor.eq(Mux(setup.operation == Operation.DISTANCE, below, self.value)),
        ]
        m.submodules.high = high = DspMultiplier(a=signed(16), b=unsigned(16))
        m.submodules.low = low = DspMultiplier(a=unsigned(16), b=unsigned(16))
        m.d.comb += [
            high.a.eq(factor[16:]), low.a.eq(factor[:16]),
            high.b.eq(self.multiplier), low.b.eq(self.multiplier),
        ]
        shift = Signal(6)
        m.d.sync += shift.eq(setup.shift + Mux(setup.scaled, self.exponent, 0))
        carried = high.product + low.product[16:]
        product = pipeline(m, Cat(low.product[:16], carried[:32]).as_signed(), 1, "product")
        # The bit below the last one rounds: ((2 p >> e) + 1) >> 1.
        doubled = Cat(Const(0, 1), product).as_signed()
        coarse = pipeline(m, shifted(doubled, shift[3:], 8), 1, "coarse")
        fine = pipeline(m, shifted(coarse, shift[:3], 1), 1, "fine")
        near = pipeline(m, clamp(fine, 18), 1, "near")  # what is beyond saturates, too
        rounded = (near + 1) >> 1
        scaled = pipeline(
            m, Mux(setup.narrow, clamp(rounded, 8), clamp(rounded, 16)).as_signed(), 1, "scaled"
        )
        total = scaled + Mux(setup.residual, self.residual, 0)
        limited = clamp(total, 16)
        positive = Mux(setup.relu & limited[-1], 0, limited)
        m.d.sync += self.result.eq(Mux(
            setup.operation == Operation.TABLE, Mux(self.beyond, 0, entry), positive,
        ))
        return m

    def _entry(self, m):
        """What the table gives, LANE_TABLE - LANE_VALUE cycles after the value."""
        setup = self.setup
        distance = Signal(16)  # not negative, unless its result is 0
        m.d.comb += distance.eq(self.pivot - self.value[:16].as_signed())
        near = ~distance[16 - _EXP_SHIFT :].any()
        exp = Mux(near, distance << _EXP_SHIFT, 0xFFFF)[:16]
        argument = pipeline(
            m, Mux(setup.table == Table.EXP, exp, self.argument), 1, "table_argument"
        )
        bank = Bank(width=32, depth=TABLE_ENTRIES, target=self.target)
        m.submodules.tables = bank
        m.submodules.interpolate = product = DspMultiplier(a=signed(16), b=signed(8))
        m.d.comb += [
            bank.write_en.eq(self.table_write), bank.write_addr.eq(self.table_entry),
            bank.write_data.eq(Cat(self.table_base, self.table_slope)),
            bank.read_addr.eq(Cat(argument[7:], setup.table)),
            product.a.eq(bank.read_data[16:]),
            product.b.eq(pipeline(m, argument[:7], bank.LATENCY, "rest")),
        ]
        base = pipeline(m, bank.read_data[:16], product.LATENCY, "base")
        entry = pipeline(m, (base + ((product.product + 64) >> 7))[:16], 1, "entry")
        return pipeline(m, entry, LANE_TABLE - LANE_VALUE - 4 - product.LATENCY, "entry_later")


class MicroReductions(wiring.Component):
    """What is computed of the results of the lane.

    Attributes
    ----------
    kind : In, `MicroReduction`
    least : In, 15 bits
    start : In, 1 bit
        Pulse, with a Setup, whose kind is ``starting``.
    starting : In, `MicroReduction`
    mark : In, 29 bits
        With ``start``.
    valid : In, 1 bit
    result : In, 16 bits
    first : In, 1 bit
        Of the results since ``start``.
    beyond : In, 1 bit
        The maximum leaves it out.
    index : In, 9 bits
    maximum : Out, int16
    best : Out, 9 bits
        The index of the maximum, or the pick.
    total : Out, 29 bits
    squares : Out, 40 bits
    """

    def __init__(self):
        super().__init__({
            "kind": In(3), "least": In(15), "start": In(1), "starting": In(3),
            "mark": In(TOTAL_BITS), "valid": In(1), "result": In(signed(16)), "first": In(1),
            "beyond": In(1), "index": In(9),
            "maximum": Out(signed(16)), "best": Out(9), "total": Out(TOTAL_BITS),
            "squares": Out(NUMBER_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        maximum = self.valid & (self.kind == MicroReduction.MAXIMUM) & ~self.beyond
        with m.If(maximum & (self.first | (self.maximum < self.result))):
            m.d.sync += [self.maximum.eq(self.result), self.best.eq(self.index)]
        kept = pipeline(m, Mux(self.result[:15] < self.least, 0, self.result[:15]), 1, "kept")
        valid = pipeline(m, self.valid, 1, "kept_valid")
        index = pipeline(m, self.index, 1, "kept_index")
        found = Signal()
        with m.If(self.start):
            m.d.sync += [
                self.total.eq(Mux(self.starting == MicroReduction.PICK, self.mark, 0)), found.eq(0),
            ]
        with m.Elif(valid & (self.kind == MicroReduction.TOTAL)):
            m.d.sync += self.total.eq(self.total + kept)
        with m.Elif(valid & (self.kind == MicroReduction.PICK) & ~found):
            with m.If(self.total < kept):
                m.d.sync += [found.eq(1), self.best.eq(index)]
            with m.Else():
                m.d.sync += self.total.eq(self.total - kept)
        m.submodules.square = square = DspMultiplier(a=signed(16), b=signed(16))
        m.d.comb += [square.a.eq(self.result), square.b.eq(self.result)]
        is_square = self.valid & (self.kind == MicroReduction.SQUARES)
        squared = pipeline(m, is_square, square.LATENCY, "squared")
        with m.If(self.start):
            m.d.sync += self.squares.eq(0)
        with m.Elif(squared):
            m.d.sync += self.squares.eq(self.squares + square.product.as_unsigned())
        return m
