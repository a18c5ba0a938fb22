"""Scalers: multiply, shift and round one sum as each requantization mode does, in a pipeline."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import MultiCycle, pipeline
from weft.hw.fabrics import FABRICS
from weft.latencies import DIGIT_STAGES, SCALER_STAGES, scale_product

__all__ = [
    "SCALERS", "OnnxScaler", "ScaleProduct", "Scaler", "SingleScaler", "TfliteScaler",
    "lane_scaler",
]


class ScaleProduct(wiring.Component):
    """``product = a * b + constant``, `latency` cycles later, one every ``cycles`` cycles.

    With ``cycles`` of 1: four products of 16 x 16 bits, and their sum. Otherwise: a digit of
    ``32 / cycles`` bits of ``b`` a cycle, from the lowest on, is multiplied by ``a``. A cycle later
    the product is added to the upper half of a sum that shifts right. A digit of 16 bits has two
    products of 16 x 16 bits. Digits of 4 or 8 bits are multiplied in two halves. Both take
    `weft.latencies.DIGIT_STAGES` cycles more.

    Parameters
    ----------
    a : shape
        32 bits.
    constant : int
        Below 2^32.
    extra : shape
        A value that accompanies the factors.
    cycles : int
        A power of two, up to 32.
    target : str
        The target of the Config.

    Attributes
    ----------
    start : In, 1 bit
        The inputs are valid. Starts are at least ``cycles`` cycles apart.
    a : In, 32 bits
        First factor; valid with ``start``.
    b : In, 32 bits
        Second factor; valid with ``start``.
    extra : In, ``extra``
        Valid with ``start``.
    product : Out, 64 bits
        Valid `latency` cycles after ``start``, for one cycle.
    o_extra : Out, ``extra``
        Valid `latency` cycles after ``start``, for `stable` cycles.
    """

    @classmethod
    def latency(cls, cycles):
        """Cycles from ``start`` to ``product``."""
        return scale_product(cycles)

    @classmethod
    def stable(cls, cycles):
        """Cycles for which ``o_extra`` is valid."""
        return max(1, cycles - 1 - DIGIT_STAGES.get(cycles, 0))

    def __init__(self, *, a, constant, extra, cycles, target):
        self.constant = constant
        self.cycles = cycles
        self.target = target
        self.shape = signed(64) if signed(32) == a else unsigned(64)
        super().__init__({
            "start": In(1), "a": In(a), "b": In(32), "extra": In(extra),
            "product": Out(self.shape), "o_extra": Out(extra),
        })

    def elaborate(self, platform):
        m = Module()
        if self.cycles == 1:
            self._at_once(m)
        else:
            self._by_digits(m)
        return m

    def _at_once(self, m):
        parts = {
            (x, y): self._part(m, a, b, f"{x}{y}")
            for x, a in enumerate(self._halves(self.a))
            for y, b in enumerate((self.b[:16], self.b[16:]))
        }
        outer = Cat(parts[0, 0], parts[1, 1])
        if self.constant:
            zeros = (self.constant & -self.constant).bit_length() - 1
            outer = Cat(outer[:zeros], (outer[zeros:] + (self.constant >> zeros))[: 64 - zeros])
        s_outer = pipeline(m, outer, 1, "outer")
        s_middle = pipeline(m, parts[0, 1] + parts[1, 0], 1, "middle")
        m.d.sync += self.product.eq(Cat(s_outer[:16], s_outer[16:] + s_middle))
        m.d.comb += self.o_extra.eq(pipeline(m, self.extra, self.latency(1), "extra"))

    def _halves(self, a):
        return a[:16], a[16:].as_signed() if self.shape.signed else a[16:]

    def _part(self, m, a, b, name):
        """The product of 16 bits each, `DSP_MULTIPLIER` cycles later."""
        m.submodules[f"part_{name}"] = part = FABRICS[self.target].multiplier(
            a=a.shape(), b=b.shape()
        )
        m.d.comb += [part.a.eq(a), part.b.eq(b)]
        return part.product

    def _digit_product(self, m, a, digit):
        """The product of ``a`` and a digit, `DIGIT_STAGES` cycles later."""
        if len(digit) == 16:
            low, high = (
                self._part(m, half, digit, n) for n, half in enumerate(self._halves(a))
            )
            return low + (high << 16)
        if self.cycles not in DIGIT_STAGES:
            return a * digit
        half = len(digit) // 2
        low, high = (
            pipeline(m, a * digit[n : n + half], 1, f"half_{n}") for n in (0, half)
        )
        return low + (high << half)

    def _by_digits(self, m):
        bits = 32 // self.cycles
        remaining = Signal(range(self.cycles + 1))  # digits
        a = Signal.like(self.a, reset_less=True)
        # Digits leave b at its low end. Digits of the product enter ``low`` at its high end.
        b, low = Signal(32, reset_less=True), Signal(32, reset_less=True)
        high = Signal(signed(33) if self.shape.signed else 33, reset_less=True)
        extra = Signal.like(self.extra, reset_less=True)
        stages = DIGIT_STAGES.get(self.cycles, 0)
        term = self._digit_product(m, a, b[:bits])
        first = pipeline(m, remaining == self.cycles, stages, "first")
        p_first = Signal()
        p_term = Signal(term.shape(), reset_less=True)
        total = Mux(p_first, Const(self.constant, high.shape()), high) + p_term
        m.d.sync += [
            remaining.eq(remaining - remaining.any()),
            b.eq(b >> bits),
            p_first.eq(first), p_term.eq(term),
            high.eq(total >> bits),
            low.eq(Cat(low[bits:], total[:bits])),
        ]
        d_extra = Signal.like(self.extra, reset_less=True)
        with m.If(remaining == 1):
            m.d.sync += d_extra.eq(extra)
        # Stays for ``cycles`` cycles, which is too short for products with more stages.
        late = max(0, stages + 2 - self.cycles)
        m.d.comb += self.o_extra.eq(pipeline(m, d_extra, late, "d_extra"))
        with m.If(self.start):
            m.d.sync += [
                remaining.eq(self.cycles), a.eq(self.a), b.eq(self.b), extra.eq(self.extra),
            ]
        m.d.comb += self.product.eq(Cat(low, high))


class Scaler(wiring.Component):
    """``y = scale(acc)``, rounded, `latency` cycles later; one sum every ``cycles`` cycles.

    All modes are exact.

    Parameters
    ----------
    cycles : int
        Cycles per sum; a power of two, up to 32.
    target : str
        The target of the Config.
    extra : shape
        A value that accompanies the sum.
    stable : int
        Cycles for which ``multiplier``, ``shift`` and ``extra`` are stable; up to ``cycles``.

    Attributes
    ----------
    start : In, 1 bit
        The inputs are valid.
    acc : In, signed 32 bits
        The sum; valid with ``start``.
    multiplier : In, 32 bits
        Valid with ``start``, for ``stable`` cycles.
    shift : In, signed 8 bits
        Valid with ``start``, for ``stable`` cycles.
    extra : In, ``extra``
        Valid with ``start``, for ``stable`` cycles.
    y : Out, signed 32 bits
        The result; valid `latency` cycles after ``start``, for one cycle.
    o_extra : Out, ``extra``
        Valid `latency` cycles after ``start``, for :attr:`o_stable` cycles.
    """

    BEFORE: int  # stages before the product
    AFTER: int  # stages after the product
    FACTOR = signed(32)
    CONSTANT = 0

    @classmethod
    def latency(cls, cycles):
        """Cycles from ``start`` to ``y``."""
        return cls.BEFORE + ScaleProduct.latency(cycles) + cls.AFTER

    def __init__(self, *, cycles, target, extra, stable=1):
        self.cycles = cycles
        self.target = target
        self.stable = stable
        self.o_stable = max(1, ScaleProduct.stable(cycles) - self.AFTER)
        super().__init__({
            "start": In(1),
            "acc": In(signed(32)),
            "multiplier": In(32),
            "shift": In(signed(8)),
            "extra": In(extra),
            "y": Out(signed(32)),
            "o_extra": Out(extra),
        })

    def elaborate(self, platform):
        m = Module()
        a, b, context = self.before(m)
        extra = self.delayed(m, self.extra, "extra")
        shapes = {name: value.shape() for name, value in context.items()}
        m.submodules.product = product = ScaleProduct(
            a=self.FACTOR, constant=self.CONSTANT, cycles=self.cycles, target=self.target,
            extra=data.StructLayout({**shapes, "extra": extra.shape()}),
        )
        start = self.start
        for stage in range(self.BEFORE):
            next_start = Signal(name=f"start_{stage}")
            m.d.sync += next_start.eq(start)
            start = next_start
        m.d.comb += [
            product.start.eq(start),
            product.a.eq(a),
            product.b.eq(b),
            product.extra.extra.eq(extra),
            *(product.extra[name].eq(value) for name, value in context.items()),
        ]
        y = self.after(m, product.product, {name: product.o_extra[name] for name in context})
        o_extra = MultiCycle(product.o_extra.extra, ScaleProduct.stable(self.cycles)).delay(
            m, self.AFTER, "o_extra"
        )
        m.d.comb += [self.y.eq(y), self.o_extra.eq(o_extra.value)]
        return m

    def delayed(self, m, value, name):
        """An input that is stable for ``stable`` cycles, BEFORE stages later."""
        return MultiCycle(value, self.stable).delay(m, self.BEFORE, name).value

    def before(self, m):
        """Both factors, and values that `after` needs, by name; BEFORE stages later."""
        raise NotImplementedError

    def after(self, m, product, context):
        """The result, AFTER stages after the product; ``context`` comes from `before`."""
        raise NotImplementedError


def _stage(m, value, name):
    """``value``, a stage later."""
    return pipeline(m, value, 1, name)


def _shift_right(value, sticky, amount, powers):
    """``value >> amount`` and a sticky bit, using the bits ``powers`` of ``amount``.

    The sticky bit is 1 if ``sticky`` is 1 or a 1 was shifted out.
    """
    for power in powers:
        sticky = sticky | (amount[power] & value[: 1 << power].any())
        value = Mux(amount[power], value >> (1 << power), value)
    return value, sticky


class TfliteScaler(Scaler):
    """``v = (wrap(acc << max(shift, 0)) * m + 2^30) >> 31``, then a rounding shift by -shift.

    The shift rounds to nearest, ties away from zero: ``y = (v >> e) + (v mod 2^e > ((2^e - 1) >>
    1) + (v < 0))``, with ``e = max(-shift, 0)``. So y is rounded up if the highest bit shifted out
    is 1, and if v < 0 only if another bit shifted out is 1 too.

    Source: TensorFlow Lite Micro, MultiplyByQuantizedMultiplier with double rounding.
    """

    BEFORE, AFTER = SCALER_STAGES["tflite"]
    CONSTANT = 1 << 30

    def before(self, m):
        left = Mux(self.shift < 0, 0, self.shift)[:5]
        right = Mux(self.shift < 0, -self.shift, 0)[:5]
        x = _stage(m, (self.acc << (left[3:] << 3))[:32], "x_coarse")
        left = _stage(m, left[:3], "left")
        x = _stage(m, (x << left)[:32].as_signed(), "x")
        return (
            x, self.delayed(m, self.multiplier, "multiplier"),
            {"right": self.delayed(m, right, "right")},
        )

    def after(self, m, product, context):
        right = MultiCycle(context["right"], ScaleProduct.stable(self.cycles))
        # Bit 0 of v is the highest bit shifted out.
        v, sticky = Cat(Const(0, 1), product[31:63]).as_signed(), Const(0, 1)
        for powers in ((4, 3), (2, 1), (0,)):
            v, sticky = _shift_right(v, sticky, right.value, powers)
            v, sticky = _stage(m, v, "v"), _stage(m, sticky, "sticky")
            right = right.delay(m, 1, "right_p")
        round_up = v[0] & (~v[-1] | sticky)
        return _stage(m, (v[1:].as_signed() + round_up)[:32].as_signed(), "y")


class SingleScaler(Scaler):
    """``y = (acc * m + 2^(30-shift)) >> (31-shift)``, saturated to int32.

    Source: the single-rounding builds of TensorFlow Lite Micro and CMSIS-NN.
    """

    BEFORE, AFTER = SCALER_STAGES["single"]

    def before(self, m):
        return self.acc, self.multiplier, {"amount": (31 - self.shift)[:6].as_unsigned()}

    def after(self, m, product, context):
        amount = context["amount"]
        v = Cat(Const(0, 1), product).as_signed()  # bit 0 of v is the highest bit shifted out
        for powers in ((5, 4), (3, 2), (1, 0)):
            v, _ = _shift_right(v, Const(0, 1), amount, powers)
            v, amount = _stage(m, v, "v"), _stage(m, amount, "amount")
        y = _stage(m, (v[1:].as_signed() + v[0]).as_signed(), "rounded")
        low, high = -(1 << 31), (1 << 31) - 1
        fits = y[31:].all() | ~y[31:].any()
        return _stage(m, Mux(fits, y[:32].as_signed(), Mux(y[-1], low, high)), "y")


class OnnxScaler(Scaler):
    """``y = rint(float32(float32(acc) * scale))``; ``multiplier`` has the bits of ``scale``.

    Three roundings, each to nearest, ties to even: ``acc`` to 24 bits, the product of 24 x 24 bits
    to 24 bits, and that to an integer. ``scale`` must be positive and normal. A result beyond
    +-2^24 is +-2^24: any clamp to 8 bits treats both alike.

    Source: onnxruntime, MlasRequantizeOutput.
    """

    BEFORE, AFTER = SCALER_STAGES["onnx"]
    FACTOR = unsigned(32)

    def before(self, m):
        # The magnitude, normalized: its first 1 moves to bit 31.
        sign = pipeline(m, self.acc[-1], 5, "sign")
        normal = _stage(m, abs(self.acc)[:32], "magnitude")
        leading_zeros = []
        for powers in ((4, 3), (2, 1), (0,)):
            for power in powers:
                move = ~normal[32 - (1 << power):].any()
                normal = Mux(move, normal << (1 << power), normal)[:32]
                leading_zeros.insert(0, move)
            normal = _stage(m, normal, "normal")
            leading_zeros = [_stage(m, bit, "leading_zeros") for bit in leading_zeros]
        is_zero = _stage(m, ~normal[31], "is_zero")
        # Round to 24 bits.
        total = self.rounded(normal, 8)
        carry = total[24]
        a = _stage(m, Mux(carry, 1 << 23, total[:24])[:24], "a")
        # The carry of 24 bits counts a stage later: another chain behind it would be too long.
        exponent, carry = _stage(m, 31 - Cat(leading_zeros), "exponent"), _stage(m, carry, "carry")
        scale = self.delayed(m, self.multiplier, "scale")
        # Bit 46 of the product has the weight 2^exponent.
        exponent = (exponent + scale[23:31].as_unsigned() + carry - 127).as_signed()
        return a, Cat(scale[:23], Const(1, 1)), {
            "sign": sign, "is_zero": is_zero, "exponent": exponent
        }

    def after(self, m, product, context):
        high = product[47]
        normal = _stage(m, Mux(high, product[:48], product[:47] << 1)[:48], "normal_p")
        exponent = _stage(m, (context["exponent"] + high).as_signed(), "exponent_p")
        # 24 bits, or 2^24 after a carry: no exponent has to wait for that.
        mantissa = _stage(m, self.rounded(normal, 24), "mantissa")
        # Round to an integer; bit 23 of the mantissa has the weight 2^exponent.
        right = _stage(m, (23 - exponent).as_signed(), "right")
        huge, tiny = right < 0, right > 25
        is_zero = pipeline(m, context["is_zero"], 2, "is_zero_p")
        flags = Cat(is_zero | tiny, huge, pipeline(m, context["sign"], 2, "sign_p"))
        right = Mux(huge | tiny, 0, right)[:5]
        value, sticky = Cat(Const(0, 1), mantissa), Const(0, 1)
        for powers in ((4, 3), (2, 1), (0,)):
            value, sticky = _shift_right(value, sticky, right, powers)
            value, sticky = _stage(m, value, "value"), _stage(m, sticky, "sticky_p")
            right, flags = _stage(m, right, "right_p"), _stage(m, flags, "flags")
        is_zero, huge, sign = flags
        round_up = value[0] & (sticky | value[1])
        # At most 2^24: only the mantissa 2^24, which needs no rounding, is as large.
        magnitude = Mux(is_zero, 0, Mux(huge, 1 << 24, (value[1:] + round_up)[:25]))
        magnitude = _stage(m, magnitude, "magnitude_p")
        sign = _stage(m, sign, "sign_y")
        return _stage(m, Mux(sign, -magnitude, magnitude), "y")

    @staticmethod
    def rounded(value, cut):
        """``value`` rounded without its ``cut`` lowest bits, and with a bit for the carry."""
        last, half, sticky = value[cut], value[cut - 1], value[: cut - 1].any()
        return (value[cut:] + (half & (sticky | last)))[: len(value) - cut + 1]


SCALERS = {"tflite": TfliteScaler, "single": SingleScaler, "onnx": OnnxScaler}


def lane_scaler(m, lane, *, mode, cycles, target, start, acc, parameters, extra=0):
    """Add the scaler of a lane as ``scaler_{lane}``, and return it.

    Parameters
    ----------
    mode : str
        A key of `SCALERS`.
    start, acc : Value
        A sum, in the cycle of its start.
    parameters : MultiCycle
        A struct with ``multiplier``, ``shift`` and all members of ``extra``; valid with the sum.
    cycles, target, extra
        As of `Scaler`.
    """
    m.submodules[f"scaler_{lane}"] = scaler = SCALERS[mode](
        cycles=cycles, target=target, extra=extra, stable=parameters.cycles
    )
    value = parameters.value
    m.d.comb += [
        scaler.start.eq(start),
        scaler.acc.eq(acc),
        scaler.multiplier.eq(value.multiplier),
        scaler.shift.eq(value.shift),
        *(scaler.extra[name].eq(value[name]) for name in (extra.members if extra else ())),
    ]
    return scaler
