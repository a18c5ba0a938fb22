"""Requantization of one sum: the multiply, shift and round of each mode, in a pipeline."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import MultiCycle, pipeline
from weft.hw.output.scale_product import ScaleProduct

__all__ = ["SCALERS", "OnnxScaler", "Scaler", "SingleScaler", "TfliteScaler"]


class Scaler(wiring.Component):
    """``y`` is ``acc`` scaled and rounded, `latency` cycles later.

    One sum goes in each ``cycles`` cycles. All modes are exact.

    Parameters
    ----------
    cycles : int
    target : str
        As of `ScaleProduct`.
    rest : shape
        Of what is to come out with the result.
    stays : int
        Cycles for which ``multiplier``, ``shift`` and ``rest`` are there; up to ``cycles``.

    Attributes
    ----------
    start : In
        A sum goes in.
    acc : In
    multiplier, shift : In
    rest : In
    y, late : Out
        ``late`` is there for `lasts` cycles.
    """

    BEFORE: int  # stages
    AFTER: int
    FACTOR = signed(32)
    CONSTANT = 0

    @classmethod
    def latency(cls, cycles):
        return cls.BEFORE + ScaleProduct.latency(cycles) + cls.AFTER

    def __init__(self, *, cycles, target, rest, stays=1):
        self.cycles = cycles
        self.target = target
        self.stays = stays
        self.lasts = max(1, ScaleProduct.lasts(cycles) - self.AFTER)
        super().__init__({
            "start": In(1),
            "acc": In(signed(32)),
            "multiplier": In(32),
            "shift": In(signed(8)),
            "rest": In(rest),
            "y": Out(signed(32)),
            "late": Out(rest),
        })

    def elaborate(self, platform):
        m = Module()
        a, b, facts = self.before(m)
        rest = self.held(m, self.rest, "rest")
        shape = {name: fact.shape() for name, fact in facts.items()}
        together = data.StructLayout({**shape, "rest": rest.shape()})
        m.submodules.product = product = ScaleProduct(
            a=self.FACTOR, constant=self.CONSTANT, fact=together, cycles=self.cycles,
            target=self.target,
        )
        start = self.start
        for stage in range(self.BEFORE):
            following = Signal(name=f"start_{stage}")
            m.d.sync += following.eq(start)
            start = following
        m.d.comb += [
            product.start.eq(start),
            product.a.eq(a),
            product.b.eq(b),
            product.fact.rest.eq(rest),
            *(product.fact[name].eq(fact) for name, fact in facts.items()),
        ]
        y = self.after(m, product.product, {name: product.late[name] for name in facts})
        late = MultiCycle(product.late.rest, ScaleProduct.lasts(self.cycles)).later(
            m, self.AFTER, "late"
        )
        m.d.comb += [self.y.eq(y), self.late.eq(late.value)]
        return m

    def held(self, m, value, name):
        """What came with a sum, BEFORE stages later."""
        return MultiCycle(value, self.stays).later(m, self.BEFORE, name).value

    def before(self, m):
        """The factors, and the facts that go with them, after BEFORE stages."""
        raise NotImplementedError

    def after(self, m, product, facts):
        """The result, after AFTER stages."""
        raise NotImplementedError


def _stage(m, value, name):
    """``value``, a stage later."""
    return pipeline(m, value, 1, name)


def _fall(value, rest, amount, powers):
    """``value >> amount``, as far as ``powers`` of two go, and whether ones have been lost."""
    for power in powers:
        rest = rest | (amount[power] & value[: 1 << power].any())
        value = Mux(amount[power], value >> (1 << power), value)
    return value, rest


class TfliteScaler(Scaler):
    """``v = (wrap(acc << max(shift, 0)) * m + 2^30) >> 31``, then a rounding shift by -shift.

    The shift rounds to nearest, halves away from zero: ``y = (v >> e) + (v mod 2^e > ((2^e - 1)
    >> 1) + (v < 0))``, e the greater of -shift and 0: of the bits that are lost the first one must
    be 1, and for v < 0 another one too.

    Source: TensorFlow Lite Micro, MultiplyByQuantizedMultiplier with double rounding.
    """

    BEFORE = 2
    AFTER = 4
    CONSTANT = 1 << 30

    def before(self, m):
        left = Mux(self.shift < 0, 0, self.shift)[:5]
        right = Mux(self.shift < 0, -self.shift, 0)[:5]
        x = _stage(m, (self.acc << (left[3:] << 3))[:32], "x_coarse")
        left = _stage(m, left[:3], "left")
        x = _stage(m, (x << left)[:32].as_signed(), "x")
        return (
            x, self.held(m, self.multiplier, "multiplier"),
            {"right": self.held(m, right, "right")},
        )

    def after(self, m, product, facts):
        right = MultiCycle(facts["right"], ScaleProduct.lasts(self.cycles))
        v = Cat(Const(0, 1), product[31:63]).as_signed()  # below it, the first bit that is lost
        rest = Const(0, 1)
        for powers in ((4, 3), (2, 1), (0,)):
            v, rest = _fall(v, rest, right.value, powers)
            v, rest = _stage(m, v, "v"), _stage(m, rest, "rest")
            right = right.later(m, 1, "right_late")
        up = v[0] & (~v[-1] | rest)
        return _stage(m, (v[1:].as_signed() + up)[:32].as_signed(), "y")


class SingleScaler(Scaler):
    """``y = (acc * m + 2^(30-shift)) >> (31-shift)``, saturated to int32.

    Source: the single-rounding builds of TensorFlow Lite Micro and CMSIS-NN.
    """

    BEFORE = 0
    AFTER = 5

    def before(self, m):
        return self.acc, self.multiplier, {"total": (31 - self.shift)[:6].as_unsigned()}

    def after(self, m, product, facts):
        total = facts["total"]
        v = Cat(Const(0, 1), product).as_signed()  # below it, the first bit that is lost
        for powers in ((5, 4), (3, 2), (1, 0)):
            v, _ = _fall(v, Const(0, 1), total, powers)
            v, total = _stage(m, v, "v"), _stage(m, total, "total")
        y = _stage(m, (v[1:].as_signed() + v[0]).as_signed(), "rounded")
        low, high = -(1 << 31), (1 << 31) - 1
        fits = y[31:].all() | ~y[31:].any()
        return _stage(m, Mux(fits, y[:32].as_signed(), Mux(y[-1], low, high)), "y")


class OnnxScaler(Scaler):
    """``y = rint(float32(float32(acc) * scale))``, ``multiplier`` being the bits of ``scale``.

    ``acc`` is rounded to 24 bits, the product of 24 x 24 bits again, then it is rounded to an
    integer: each time to nearest, halves to even. ``scale`` is positive and normal. Beyond
    +-2^24 the result is +-2^24, which any clamp to 8 bits treats alike.

    Source: onnxruntime, MlasRequantizeOutput.
    """

    BEFORE = 5
    AFTER = 7
    FACTOR = unsigned(32)

    def before(self, m):
        # The magnitude, with its first one moved to bit 31.
        sign = pipeline(m, self.acc[-1], 5, "sign")
        normal = _stage(m, abs(self.acc)[:32], "magnitude")
        zeros = []
        for powers in ((4, 3), (2, 1), (0,)):
            for power in powers:
                none = ~normal[32 - (1 << power):].any()
                normal = Mux(none, normal << (1 << power), normal)[:32]
                zeros.insert(0, none)
            normal = _stage(m, normal, "normal")
            zeros = [_stage(m, zero, "zero") for zero in zeros]
        nothing = _stage(m, ~normal[31], "nothing")
        # To 24 bits.
        a, carry = self.rounded(normal, 8)
        a = _stage(m, a, "a")
        exponent = _stage(m, 31 - Cat(zeros) + carry, "exponent")
        scale = self.held(m, self.multiplier, "scale")
        # 2^exponent is the weight of the product's bit 46.
        exponent = (exponent + scale[23:31].as_unsigned() - 127).as_signed()
        return a, Cat(scale[:23], Const(1, 1)), {
            "sign": sign, "nothing": nothing, "exponent": exponent
        }

    def after(self, m, product, facts):
        above = product[47]
        normal = _stage(m, Mux(above, product[:48], product[:47] << 1)[:48], "normal_p")
        exponent = _stage(m, (facts["exponent"] + above).as_signed(), "exponent_p")
        mantissa, carry = self.rounded(normal, 24)
        mantissa = _stage(m, mantissa, "mantissa")
        # To an integer: 2^exponent is the weight of the mantissa's first bit, bit 23.
        right = _stage(m, (23 - exponent - carry).as_signed(), "right")
        huge, tiny = right < 0, right > 25
        nothing = pipeline(m, facts["nothing"], 2, "nothing_p")
        facts = Cat(nothing | tiny, huge, pipeline(m, facts["sign"], 2, "sign_p"))
        right = Mux(huge | tiny, 0, right)[:5]
        value, rest = Cat(Const(0, 1), mantissa), Const(0, 1)
        for powers in ((4, 3), (2, 1), (0,)):
            value, rest = _fall(value, rest, right, powers)
            value, rest = _stage(m, value, "value"), _stage(m, rest, "rest_p")
            right, facts = _stage(m, right, "right_p"), _stage(m, facts, "facts")
        up = value[0] & (rest | value[1])
        size = _stage(m, Mux(facts[0], 0, Mux(facts[1], 1 << 24, value[1:] + up)), "size")
        sign = _stage(m, facts[2], "sign_last")
        return _stage(m, Mux(sign, -size, size), "y")

    @staticmethod
    def rounded(value, cut):
        """``value`` without its ``cut`` lowest bits, and whether rounding carried it over."""
        lowest, half, rest = value[cut], value[cut - 1], value[: cut - 1].any()
        width = len(value) - cut
        total = (value[cut:] + (half & (rest | lowest)))[: width + 1]
        carry = total[width]
        return Mux(carry, 1 << (width - 1), total[:width])[:width], carry


SCALERS = {"tflite": TfliteScaler, "single": SingleScaler, "onnx": OnnxScaler}
