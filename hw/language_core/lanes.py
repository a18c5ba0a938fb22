"""`Lanes`: four values a cycle through a table, a product, a rounding shift and saturation."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import DualPortBank
from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.language_core.config import LANES
from weft.language_core.descriptors import Factor, Operand
from weft.language_core.latencies import LANES_OUT, TABLE_OUT

__all__ = ["ENTRIES", "LaneControl", "Lanes", "PIECES", "clamp", "shifted"]

PIECES = 512  # of a table
ENTRIES = 2 * PIECES  # exp, and silu
_EXP_SHIFT = 4  # from a difference of scores, with 8 bits after the point, to 16 of an argument


def clamp(value, bits):
    """A signed value, saturated to ``bits`` bits."""
    top = value[bits - 1 :]
    fits = ~top.any() | top.all()
    limit = Cat((~value[-1]).replicate(bits - 1), value[-1])
    return Mux(fits, value[:bits], limit).as_signed()


class LaneControl(data.Struct):
    """What the lanes compute."""

    operand: 3
    factor: 2
    residual: 1
    shift: signed(7)
    narrow: 1  # results are int8


class Lanes(wiring.Component):
    """``result <= saturate(residual + saturate((operand * factor + 2^(e - 1)) >> e))``, 4 lanes.

    ``e`` is the shift, and the exponent of a scale if it is the factor; without a shift nothing is
    added. A product has 32 x 18 bits: a DSP block multiplies the upper half of the operand, a
    second one the lower half. For `Operand.PAIR` they multiply two neighbours: lane 2n computes
    ``x[2n] * cos - x[2n + 1] * sin``, lane 2n + 1 computes ``x[2n] * sin + x[2n + 1] * cos``, with
    cos and sin from parameters 2n and 2n + 1.

    A table has 512 pieces: ``base[i] + ((slope[i] * f + 64) >> 7)``, where i is the upper 9 bits
    of the argument and f the lower 7 bits.

    * exp: the argument is ``16 * (maximum - value)``, at most 65535. In a lane with ``masked`` the
      result is 0.
    * silu: the argument is ``value + 32768``.

    `Operand.DISTANCE` is ``maximum - value``, which must not be negative.

    A group follows no handshake. What comes with it, at the stage that an attribute tells, is the
    task of the parent. Results leave LATENCY cycles after their group.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    control : In, `LaneControl`
        At stage 0, as that of its pass.
    values : In, 4 int32
        The group, at stage 0.
    masked : In, 4 bits
        At stage 1.
    maximum : In, int16
        At stage 1.
    parameters : In, 4 words of 16 bits
        At stage TABLE.
    upper_bytes : In, 1 bit
        `Operand.BYTE` is one of the upper four bytes of the parameters. At stage TABLE.
    scale, exponent : In, 16 bits, 6 bits
        At stage TABLE.
    side : In, 4 int16
        At stage TABLE if it is a factor, at stage RESIDUAL if it is a residual.
    results : Out, 4 int16
    table_write : In, 1 bit
        Pulse, between passes: entry ``table_entry`` gets ``table_base`` and ``table_slope``.
    table_entry : In, 10 bits
        exp has entries 0 to 511, silu has the others.
    table_base, table_slope : In, 16 bits
    """

    LATENCY = LANES_OUT
    TABLE = TABLE_OUT
    RESIDUAL = LANES_OUT - 2

    def __init__(self, *, target):
        self.target = target
        self.multiplier = FABRICS[target].multiplier
        super().__init__({
            "control": In(LaneControl),
            "values": In(data.ArrayLayout(signed(32), LANES)),
            "masked": In(LANES), "maximum": In(signed(16)),
            "parameters": In(data.ArrayLayout(16, LANES)), "upper_bytes": In(1),
            "scale": In(16), "exponent": In(6),
            "side": In(data.ArrayLayout(signed(16), LANES)),
            "results": Out(data.ArrayLayout(signed(16), LANES)),
            "table_write": In(1), "table_entry": In(10),
            "table_base": In(16), "table_slope": In(16),
        })

    def elaborate(self, platform):
        m = Module()
        values = [pipeline(m, self.values[n], 1, f"value_{n}") for n in range(LANES)]
        control = [self.control]  # at each stage
        for stage in range(1, self.LATENCY):
            control.append(pipeline(m, control[-1], 1, f"control_{stage}"))
        distances = self._distances(m, values)
        tables = self._tables(m, values, distances, control[1].operand == Operand.SILU)
        far = control[1].operand == Operand.DISTANCE
        raw = [
            pipeline(m, Mux(far, distance, value), self.TABLE - 1, "raw")
            for distance, value in zip(distances, values, strict=True)
        ]
        shift, rounding = self._shift(m, control[self.TABLE])
        for n in range(LANES):
            product = self._product(m, n, raw, tables[n], control[self.TABLE])
            rounded = pipeline(m, product + rounding, 1, f"rounded_{n}")
            coarse = pipeline(m, shifted(rounded, shift["coarse"], 8), 1, f"coarse_{n}")
            fine = pipeline(m, shifted(coarse, shift["fine"], 1), 1, f"fine_{n}")
            # A sum that leaves int16 is saturated before the residual is added, too.
            clamped = pipeline(m, clamp(fine, 16), 1, f"clamped_{n}")
            side = Mux(control[self.RESIDUAL].residual, self.side[n], 0)
            wide = pipeline(m, clamped + side, 1, f"wide_{n}")
            narrow = Mux(control[self.RESIDUAL + 1].narrow, clamp(wide, 8), clamp(wide, 16))
            m.d.sync += self.results[n].eq(narrow)
        return m

    def _distances(self, m, values):
        """``maximum - value``, which is not negative unless the lane is masked."""
        distances = []
        for n, value in enumerate(values):
            distances.append(Signal(16, name=f"distance_{n}"))
            m.d.comb += distances[n].eq(self.maximum - value[:16].as_signed())
        return distances

    def _tables(self, m, values, distances, silu):
        """The value of the table in each lane; two lanes share a memory."""
        found = []
        for n in range(0, LANES, 2):
            banks = {
                name: DualPortBank(width=16, depth=ENTRIES, target=self.target)
                for name in ("base", "slope")
            }
            lanes = [self._argument(m, values[k], distances[k], k, silu) for k in (n, n + 1)]
            for name, bank in banks.items():
                m.submodules[f"{name}_{n}"] = bank
                m.d.comb += [
                    bank.a_addr.eq(lanes[0][0]),
                    bank.b_addr.eq(Mux(self.table_write, self.table_entry, lanes[1][0])),
                    bank.b_write_en.eq(self.table_write.replicate(2)),
                    bank.b_write_data.eq(getattr(self, f"table_{name}")),
                ]
            for port, (_, fraction, zero) in zip("ab", lanes, strict=True):
                base, slope = (
                    getattr(bank, f"{port}_data").as_signed() for bank in banks.values()
                )
                found.append(self._interpolated(m, base, slope, fraction, zero))
        return found

    def _argument(self, m, value, distance, lane, silu):
        """Entry, fraction with 7 bits after the point, and whether the result is 0: stage 2."""
        scaled = Cat(Const(0, _EXP_SHIFT), distance)
        exp = Mux(scaled[16:].any(), 0xFFFF, scaled[:16])
        argument = Mux(silu, Cat(value[:15], ~value[15]), exp)
        entry = pipeline(m, Cat(argument[7:16], silu), 1, f"entry_{lane}")
        fraction = pipeline(m, argument[:7], 1, f"fraction_{lane}")
        zero = pipeline(m, self.masked[lane] & ~silu, 1, f"zero_{lane}")
        return entry, fraction, zero

    def _interpolated(self, m, base, slope, fraction, zero):
        """The value of a piece, at stage TABLE."""
        product = self.multiplier(a=signed(16), b=7)
        m.submodules += product
        m.d.comb += [
            product.a.eq(slope), product.b.eq(pipeline(m, fraction, DualPortBank.LATENCY, "part")),
        ]
        base = pipeline(m, base, product.LATENCY, "base")
        zero = pipeline(m, zero, DualPortBank.LATENCY + product.LATENCY, "zero")
        value = base + ((product.product + 64) >> 7)
        return pipeline(m, Mux(zero, 0, value)[:16].as_signed(), 1, "interpolated")

    def _shift(self, m, control):
        """The two parts of the shift and the rounding, at their stages; the same in all lanes."""
        own = Mux(control.factor == Factor.SCALE, self.exponent, 0)
        exponent = pipeline(m, (own + control.shift)[:6], 1, "exponent")
        delay = self.multiplier.LATENCY - 1
        before = pipeline(m, exponent, delay, "exponent_of_product")
        rounding = pipeline(m, ((Const(1) << before) >> 1)[:48], 1, "rounding")
        coarse = pipeline(m, before[3:], 2, "coarse_shift")
        fine = pipeline(m, before[:3], 3, "fine_shift")
        return {"coarse": coarse, "fine": fine}, rounding

    def _product(self, m, n, raw, table, control):
        """``operand * factor``, one stage after the product of the DSP blocks."""
        even = n & ~1
        pair = control.operand == Operand.PAIR
        operand, factor = Signal(signed(32), name=f"x_{n}"), Signal(signed(18), name=f"y_{n}")
        bytes_ = self.parameters.as_value()
        low, high = (bytes_[8 * k : 8 * (k + 1)].as_signed() for k in (n, n + LANES))
        with m.Switch(control.operand):
            with m.Case(Operand.EXP, Operand.SILU):
                m.d.comb += operand.eq(table)
            with m.Case(Operand.BYTE):
                m.d.comb += operand.eq(Mux(self.upper_bytes, high, low))
            with m.Default():
                m.d.comb += operand.eq(raw[n])
        with m.Switch(control.factor):
            with m.Case(Factor.ONE):
                m.d.comb += factor.eq(1)
            with m.Case(Factor.PARAMETER):
                m.d.comb += factor.eq(self.parameters[n].as_signed())
            with m.Case(Factor.SCALE):
                m.d.comb += factor.eq(self.scale)
            with m.Case(Factor.SIDE):
                m.d.comb += factor.eq(self.side[n])
        cos, sin = (self.parameters[even + k].as_signed() for k in (0, 1))
        first, second = (sin, cos) if n % 2 else (cos, -sin)
        upper, lower = (self.multiplier(a=signed(17), b=signed(18)) for _ in range(2))
        m.submodules[f"upper_{n}"], m.submodules[f"lower_{n}"] = upper, lower
        m.d.comb += [
            upper.a.eq(Mux(pair, raw[even][:16].as_signed(), operand[16:].as_signed())),
            lower.a.eq(Mux(pair, raw[even + 1][:16].as_signed(), operand[:16])),
            upper.b.eq(Mux(pair, first, factor)), lower.b.eq(Mux(pair, second, factor)),
        ]
        was_pair = pipeline(m, pair, upper.LATENCY, f"was_pair_{n}")
        high = Mux(was_pair, upper.product, upper.product << 16)
        return pipeline(m, (high + lower.product)[:51].as_signed(), 1, f"product_{n}")


def shifted(value, places, unit):
    """``value >> (places * unit)``."""
    for n, bit in enumerate(places):
        value = Mux(bit, value >> (unit << n), value)
    return value
