"""Fixed-point arithmetic of TFLite, in 64-bit numpy: the same bits as its C++ code in 32.

Sources: TFLite Micro, ``kernels/internal/common.h``; gemmlowp, ``fixedpoint/fixedpoint.h``.
"""

import math

import numpy as np

__all__ = [
    "EXP_STEPS", "clamp", "exp_on_negative", "high_mul", "logistic", "multiplier_of", "multiply",
    "multiply_wide", "reciprocal", "round_shift", "tanh", "wrap32",
]

LOW, HIGH = -(1 << 31), (1 << 31) - 1


def wrap32(x):
    """The low 32 bits as a signed number, in int64."""
    return np.asarray(x).astype(np.int32).astype(np.int64)


def clamp(x, low, high, dtype):
    """``x`` limited to ``low..high``, in ``dtype``."""
    return np.clip(x, low, high).astype(dtype)


def high_mul(a, b):
    """``(a * b + 2**30) >> 31``, saturated (``SaturatingRoundingDoublingHighMul``)."""
    return np.minimum((np.int64(a) * np.int64(b) + (1 << 30)) >> 31, HIGH)


def round_shift(x, exponent):
    """``x / 2**exponent`` rounded, ties away from zero (``RoundingDivideByPOT``)."""
    x, exponent = np.asarray(x, np.int64), np.int64(exponent)
    mask = (np.int64(1) << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


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


EXP_STEPS = (  # exp(-2**power) in 31 fractional bits, from 2**-2 on
    (-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535),
    (3, 720401), (4, 242),
)


def exp_on_negative(x, integer_bits=5):
    """``exp(x)`` for ``x <= 0`` with ``integer_bits``, in 31 fractional bits.

    Source: gemmlowp, ``exp_on_negative_values``.
    """
    x = np.asarray(x, np.int64)
    fraction = 31 - integer_bits
    quarter = 1 << (fraction - 2)
    rest = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(np.clip(rest << integer_bits, LOW, HIGH))
    remainder = rest - x
    for power, factor in EXP_STEPS:
        if integer_bits > power:
            bit = (remainder >> (fraction + power)) & 1
            result = np.where(bit, high_mul(result, factor), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << (fraction + 5)), 0, result)
    return np.where(x == 0, HIGH, result)


def _exp_near_zero(a):
    """``exp(a)`` for ``-1/4 <= a < 0``, both in 31 fractional bits, by a polynomial at -1/8."""
    x = a + (1 << 28)
    x2 = high_mul(x, x)
    x3, x4 = high_mul(x2, x), high_mul(x2, x2)
    third = high_mul(round_shift(x4, 2) + x3, 715827883)
    return 1895147668 + high_mul(1895147668, x + round_shift(third + x2, 1))


def reciprocal(x, integer_bits):
    """``1 / x`` in 31 fractional bits, and the shift that completes it (``GetReciprocal``)."""
    x = np.asarray(x, np.int64)
    zeros = 31 - np.floor(np.log2(np.maximum(x, 1))).astype(np.int64)  # exact below 2**48
    shifted = (x << zeros) - (1 << 31)
    return one_over_one_plus(wrap32(shifted)), integer_bits - zeros


def one_over_one_plus(a):
    """``1 / (1 + a)`` for ``0 <= a < 1``, in 31 fractional bits.

    Source: gemmlowp, ``one_over_one_plus_x_for_x_in_0_1``.
    """
    return np.clip(_two_over_one_plus(a) << 1, LOW, HIGH)


def _two_over_one_plus(a):
    """``2 / (1 + a)`` for ``0 <= a < 1``, in 29 fractional bits: three Newton steps."""
    half = (np.asarray(a, np.int64) + HIGH + 1) >> 1  # (a + 1) / 2, rounded half up
    x = 1515870810 + high_mul(half, -1010580540)  # 48/17 and -32/17, in 29 fractional bits
    for _ in range(3):
        error = (1 << 29) - high_mul(half, x)
        x = x + np.clip(high_mul(x, error) << 2, LOW, HIGH)
    return x


def logistic(x):
    """``1 / (1 + exp(-x))``; x in 27 fractional bits, the result in 31 (gemmlowp, ``logistic``)."""
    x = np.asarray(x, np.int64)
    upper = one_over_one_plus(exp_on_negative(-np.abs(x), 4))
    return np.where(x == 0, 1 << 30, np.where(x > 0, upper, HIGH - upper))


def tanh(x):
    """``tanh(x)``; x in 27 fractional bits, the result in 31 (gemmlowp, ``tanh``)."""
    x = np.asarray(x, np.int64)
    # (1 - e) / (1 + e), where e = exp(-2 * abs(x)): the same bits have one more integer bit.
    twice = _two_over_one_plus(exp_on_negative(-np.abs(x), 5))
    return np.sign(x) * np.clip((twice - (1 << 29)) << 2, LOW, HIGH)
