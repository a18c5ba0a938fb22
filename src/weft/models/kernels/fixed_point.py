"""Fixed-point arithmetic of TFLite and of gemmlowp, in 64-bit numpy: the bits of their C++ code."""

import math

import numpy as np

__all__ = [
    "INT16", "INT32", "FixedPoint", "clamp", "high_mul", "inverse_square_root", "logistic",
    "multiplier_of", "multiply", "multiply_wide", "reciprocal", "round_shift", "tanh", "wrap32",
]


# gemmlowp's fixed-point numbers of 32 and of 16 bits, and their functions.
#
# Source: gemmlowp, ``fixedpoint/fixedpoint.h``. In 16 bits, constants of 31 fractional bits are
# rounded to 15. Additions wrap where they do not saturate.

_EXP_STEPS = (  # exp(-2**power) in 31 fractional bits, from 2**-2 on
    (-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535),
    (3, 720401), (4, 242),
)


def round_shift(x, exponent):
    """``x / 2**exponent`` rounded, ties away from zero (``RoundingDivideByPOT``)."""
    x, exponent = np.asarray(x, np.int64), np.int64(exponent)
    mask = (np.int64(1) << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


class FixedPoint:
    """Numbers of ``bits`` bits; a value below 1 has ``bits - 1`` fractional bits."""

    def __init__(self, bits: int):
        self._bits = bits
        self._one = (1 << (bits - 1)) - 1

    def saturate(self, x):
        """``x`` limited to the numbers of ``bits`` bits."""
        return np.clip(x, -self._one - 1, self._one)

    def wrap(self, x):
        """The low ``bits`` bits as a signed number, in int64."""
        return np.asarray(x).astype(f"i{self._bits // 8}").astype(np.int64)

    def high_mul(self, a, b):
        """``(a * b) >> (bits - 1)`` rounded half up, saturated.

        ``SaturatingRoundingDoublingHighMul``.
        """
        product = np.int64(a) * np.int64(b) + (1 << (self._bits - 2))
        return np.minimum(product >> (self._bits - 1), self._one)

    def exp_on_negative(self, x, integer_bits):
        """``exp(x)`` for ``x <= 0`` with ``integer_bits`` (``exp_on_negative_values``)."""
        x = np.asarray(x, np.int64)
        fraction = self._bits - 1 - integer_bits
        quarter = 1 << (fraction - 2)
        rest = (x & (quarter - 1)) - quarter
        result = self._exp_near_zero(self.saturate(rest << integer_bits))
        remainder = rest - x
        for power, factor in _EXP_STEPS:
            if integer_bits > power:
                bit = (remainder >> (fraction + power)) & 1
                result = np.where(bit, self.high_mul(result, self._constant(factor)), result)
        if integer_bits > 5:
            result = np.where(x < -(1 << (fraction + 5)), 0, result)
        return np.where(x == 0, self._one, result)

    def one_over_one_plus(self, a):
        """``1 / (1 + a)`` for ``0 <= a < 1`` (``one_over_one_plus_x_for_x_in_0_1``)."""
        return self.saturate(self._two_over_one_plus(a) << 1)

    def logistic(self, x, integer_bits):
        """``1 / (1 + exp(-x))``; x has ``integer_bits``."""
        upper = self.one_over_one_plus(self.exp_on_negative(-np.abs(x), integer_bits))
        return np.where(x > 0, upper, np.where(x < 0, self._one - upper, 1 << (self._bits - 2)))

    def tanh(self, x, integer_bits):
        """``tanh(x)``; x has ``integer_bits``."""
        # (1 - e) / (1 + e), where e = exp(-2 * abs(x)): the same bits have one more integer bit.
        twice = self._two_over_one_plus(self.exp_on_negative(-np.abs(x), integer_bits + 1))
        return np.sign(x) * self.saturate((twice - (1 << (self._bits - 3))) << 2)

    def _constant(self, value):
        """A constant of 31 fractional bits, rounded."""
        return (value + (1 << (32 - self._bits) >> 1)) >> (32 - self._bits)

    def _exp_near_zero(self, a):
        """``exp(a)`` for ``-1/4 <= a < 0``, by a polynomial at -1/8."""
        x = a + (1 << (self._bits - 4))
        x2 = self.high_mul(x, x)
        x3, x4 = self.high_mul(x2, x), self.high_mul(x2, x2)
        third = self.high_mul(self.wrap(round_shift(x4, 2) + x3), self._constant(715827883))
        factor = self._constant(1895147668)
        inner = self.wrap(x + round_shift(self.wrap(third + x2), 1))
        return self.saturate(factor + self.high_mul(factor, inner))

    def _two_over_one_plus(self, a):
        """``2 / (1 + a)`` for ``0 <= a < 1``, two fractional bits fewer: three Newton steps."""
        half = (np.asarray(a, np.int64) + self._one + 1) >> 1  # (a + 1) / 2, rounded half up
        # 48/17 and -32/17
        x = self._constant(1515870810) + self.high_mul(half, self._constant(-1010580540))
        x = self.wrap(x)
        for _ in range(3):
            error = self.wrap((1 << (self._bits - 3)) - self.high_mul(half, x))
            x = self.wrap(x + self.saturate(self.high_mul(x, error) << 2))
        return x


INT16, INT32 = FixedPoint(16), FixedPoint(32)


# TFLite's functions of 32 bits.
#
# Source: TFLite Micro, ``kernels/internal/common.h``.

high_mul, wrap32 = INT32.high_mul, INT32.wrap


def clamp(x, low, high, dtype):
    """``x`` limited to ``low..high``, in ``dtype``."""
    return np.clip(x, low, high).astype(dtype)


def multiply(x, multiplier, shift):
    """``x * multiplier * 2**(shift - 31)`` (``MultiplyByQuantizedMultiplier``, int32)."""
    shift = np.asarray(shift, np.int64)
    shifted = wrap32(np.asarray(x, np.int64) << np.maximum(shift, 0))
    return round_shift(high_mul(shifted, multiplier), np.maximum(-shift, 0))


def multiply_wide(x, multiplier, shift):
    """The same with a 64-bit ``x`` and a multiplier of 16 bits, ties up.

    ::

        m = min((multiplier + 2**15) >> 16, 32767)
        y = (x * m + 2**(14 - shift)) >> (15 - shift)                    wraps to int32
    """
    multiplier = np.asarray(multiplier, np.int64)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    total = 15 - np.asarray(shift, np.int64)
    return wrap32((np.asarray(x, np.int64) * reduced + (np.int64(1) << (total - 1))) >> total)


def multiplier_of(scale):
    """Multiplier and shift of one finite scale of any sign (``QuantizeMultiplier``)."""
    fraction, shift = math.frexp(float(scale))
    multiplier = int(math.copysign(math.floor(abs(fraction) * 2**31 + 0.5), fraction))
    if abs(multiplier) == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def reciprocal(x, integer_bits):
    """``1 / x`` in 31 fractional bits, and the shift that completes it (``GetReciprocal``)."""
    x = np.asarray(x, np.int64)
    zeros = 31 - np.floor(np.log2(np.maximum(x, 1))).astype(np.int64)  # exact below 2**48
    shifted = (x << zeros) - (1 << 31)
    return INT32.one_over_one_plus(wrap32(shifted)), integer_bits - zeros


def inverse_square_root(x):
    """Multiplier and shift of ``1 / sqrt(x)`` (``GetInvSqrtQuantizedMultiplierExp``).

    x is 0 .. 255, and 0 counts as 1.
    """
    x = np.asarray(x, np.int64)
    pairs = (30 - np.floor(np.log2(np.maximum(x, 1))).astype(np.int64)) // 2 - 1
    half = (x << 2 * pairs) >> 1  # in 28 fractional bits, as all numbers here
    quarter, y = round_shift(half, 1), np.int64(1 << 28)
    for _ in range(5):  # Newton: y = 1.5 * y - x / 2 * y**3
        cube = INT32.saturate(high_mul(high_mul(y, y), y) << 6)
        y = INT32.saturate(wrap32(high_mul(3 << 27, y) - high_mul(quarter, cube)) << 3)
    y, shift = high_mul(y, 1518500250), pairs - 11  # sqrt(2) / 2
    y, shift = y << np.maximum(shift, 0), np.minimum(shift, 0)
    return np.where(x <= 1, (1 << 31) - 1, y), np.where(x <= 1, 0, shift)


def logistic(x):
    """``1 / (1 + exp(-x))``; x in 27 fractional bits, the result in 31."""
    return INT32.logistic(np.asarray(x, np.int64), 4)


def tanh(x):
    """``tanh(x)``; x in 27 fractional bits, the result in 31."""
    return INT32.tanh(np.asarray(x, np.int64), 4)
