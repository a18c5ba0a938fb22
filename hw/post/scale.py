"""Requantization of one sum: the multiply, shift and round of each mode, in a pipeline."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SCALERS", "OnnxScaler", "Scaler", "SingleScaler", "TfliteScaler"]


class Scaler(wiring.Component):
    """``y`` is ``acc`` scaled and rounded, LATENCY steps (cycles with ``en``) later.

    The multiply is four products of 16 x 16 bits and their sum, each a stage: what an FPGA's
    multipliers take. All modes are exact.

    Attributes
    ----------
    en : In
        The pipeline moves on.
    acc : In
    multiplier, shift : In
    y : Out
    """

    LATENCY: int

    def __init__(self):
        super().__init__({
            "en": In(1),
            "acc": In(signed(32)),
            "multiplier": In(32),
            "shift": In(signed(8)),
            "y": Out(signed(32)),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.en):
            self.stages(m)
        return m

    def stages(self, m):
        """Statements of all stages, under ``en``."""
        raise NotImplementedError

    @staticmethod
    def register(m, value, name):
        """``value``, a stage later."""
        register = Signal(value.shape(), name=name)
        m.d.sync += register.eq(value)
        return register

    def product(self, m, a, b):
        """``a * b``, two stages later: ``a`` of up to 32 bits, signed or not, ``b`` unsigned."""
        low_a, high_a = a[:16], (a >> 16)
        low_b, high_b = b[:16], b[16:]
        parts = [
            self.register(m, x * y, f"p_{name}")
            for name, x, y in (
                ("ll", low_a, low_b), ("lh", low_a, high_b),
                ("hl", high_a, low_b), ("hh", high_a, high_b),
            )
        ]
        ll, lh, hl, hh = parts
        return self.register(m, ll + ((lh + hl) << 16) + (hh << 32), "p_product")


class TfliteScaler(Scaler):
    """``v = (wrap(acc << max(shift, 0)) * m + 2^30) >> 31``, then a rounding shift by -shift.

    The shift rounds to nearest, halves away from zero: ``y = (v >> e) + (v mod 2^e > ((2^e - 1)
    >> 1) + (v < 0))``, e the greater of -shift and 0.

    Source: TensorFlow Lite Micro, MultiplyByQuantizedMultiplier with double rounding.
    """

    LATENCY = 4

    def stages(self, m):
        left = Mux(self.shift < 0, 0, self.shift)[:5]
        right = Mux(self.shift < 0, -self.shift, 0)[:5]
        x = self.register(m, (self.acc << left)[:32].as_signed(), "x")
        multiplier = self.register(m, self.multiplier, "multiplier")
        for stage in range(3):
            right = self.register(m, right, f"right_{stage}")
        product = self.product(m, x, multiplier)
        v = Signal(signed(32))
        mask = Signal(32)
        m.d.comb += [
            v.eq((product + (1 << 30)) >> 31),
            mask.eq((Const(1, 32) << right) - 1),
        ]
        rest = v.as_unsigned() & mask
        half = (mask >> 1) + (v < 0)
        m.d.sync += self.y.eq((v >> right) + (rest > half))


class SingleScaler(Scaler):
    """``y = (acc * m + 2^(30-shift)) >> (31-shift)``, saturated to int32.

    Source: the single-rounding builds of TensorFlow Lite Micro and CMSIS-NN.
    """

    LATENCY = 4

    def stages(self, m):
        x = self.register(m, self.acc, "x")
        multiplier = self.register(m, self.multiplier, "multiplier")
        total = (31 - self.shift)[:6]
        for stage in range(3):
            total = self.register(m, total, f"total_{stage}")
        product = self.product(m, x, multiplier)
        rounded = Signal(signed(66))
        y = Signal(signed(66))
        m.d.comb += [
            rounded.eq(product + ((Const(1, 64) << total) >> 1)),
            y.eq(rounded >> total),
        ]
        low, high = -(1 << 31), (1 << 31) - 1
        m.d.sync += self.y.eq(Mux(y < low, low, Mux(y > high, high, y)))


class OnnxScaler(Scaler):
    """``y = rint(float32(float32(acc) * scale))``, ``multiplier`` being the bits of ``scale``.

    ``acc`` is rounded to 24 bits, the product of 24 x 24 bits again, then it is rounded to an
    integer: each time to nearest, halves to even. ``scale`` is positive and normal. Beyond
    +-2^24 the result is +-2^24, which any clamp to 8 bits treats alike.

    Source: onnxruntime, MlasRequantizeOutput.
    """

    LATENCY = 7

    def stages(self, m):
        # The magnitude, with its first one moved to bit 31.
        sign = self.register(m, self.acc < 0, "sign_0")
        magnitude = self.register(m, abs(self.acc)[:32], "magnitude")
        zeros = Signal(range(33))
        m.d.comb += zeros.eq(32)
        for bit in range(32):
            with m.If(magnitude[bit]):
                m.d.comb += zeros.eq(31 - bit)
        normal = self.register(m, (magnitude << zeros[:5])[:32], "normal")
        exponent = self.register(m, 31 - zeros, "exponent_0")
        nothing = self.register(m, zeros[5], "nothing_0")
        # To 24 bits.
        mantissa, carry = self.rounded(normal, 8)
        a = self.register(m, mantissa, "a")
        exponent = self.register(m, exponent + carry, "exponent_1")

        scale = self.multiplier
        for stage in range(3):
            scale = self.register(m, scale, f"scale_{stage}")
        product = self.product(m, a, Cat(scale[:23], Const(1, 1)))
        # 2^exponent is the weight of the product's bit 46.
        exponent = exponent + scale[23:31].as_unsigned() - 127
        for stage in range(2):
            exponent = self.register(m, exponent, f"exponent_p{stage}")
        above = product[47]
        normal = Mux(above, product[:48], product[:47] << 1)[:48]
        mantissa, carry = self.rounded(normal, 24)
        mantissa = self.register(m, mantissa, "mantissa")
        exponent = self.register(m, exponent + above + carry, "exponent_2")
        for stage in range(5):
            sign = self.register(m, sign, f"sign_{stage + 1}")
        for stage in range(4):
            nothing = self.register(m, nothing, f"nothing_{stage + 1}")
        # To an integer: 2^exponent is the weight of the mantissa's first bit, bit 23.
        right = 23 - exponent
        huge, tiny = right < 0, right > 25
        shifted = Signal(unsigned(50))
        m.d.comb += shifted.eq((mantissa << 26) >> Mux(huge | tiny, 0, right)[:5])
        whole, half, rest = shifted[26:], shifted[25], shifted[:25].any()
        integer = whole + (half & (rest | whole[0]))
        size = Mux(nothing | tiny, 0, Mux(huge, 1 << 24, integer))
        m.d.sync += self.y.eq(Mux(sign, -size, size))

    @staticmethod
    def rounded(value, cut):
        """``value`` without its ``cut`` lowest bits, and whether rounding carried it over."""
        lowest, half, rest = value[cut], value[cut - 1], value[: cut - 1].any()
        width = len(value) - cut
        total = (value[cut:] + (half & (rest | lowest)))[: width + 1]
        carry = total[width]
        return Mux(carry, 1 << (width - 1), total[:width])[:width], carry


SCALERS = {"tflite": TfliteScaler, "single": SingleScaler, "onnx": OnnxScaler}
