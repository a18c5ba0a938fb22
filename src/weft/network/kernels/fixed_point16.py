"""Sigmoid and tanh of 16 bits as gemmlowp computes them, in 64-bit numpy; LiteRT's LSTM uses them.

Source: gemmlowp, ``fixedpoint/fixedpoint.h``, with 16-bit numbers: constants of 31 fractional bits
are rounded to 15, and additions wrap where they do not saturate.
"""

import numpy as np

from weft.network.kernels.fixed_point import EXP_STEPS, round_shift

__all__ = ["int16", "logistic", "tanh", "wrap16"]

ONE = (1 << 15) - 1


def int16(x):
    """Saturated to 16 bits, in int64."""
    return np.clip(x, -(1 << 15), ONE)


def wrap16(x):
    """The low 16 bits as a signed number, in int64."""
    return np.asarray(x).astype(np.int16).astype(np.int64)


def logistic(x, integer_bits):
    """``1 / (1 + exp(-x))`` in 15 fractional bits; x has ``integer_bits``."""
    positive = int16(_reciprocal(_exp_on_negative(-np.abs(x), integer_bits)) << 1)
    return np.where(x > 0, positive, np.where(x < 0, ONE - positive, 1 << 14))


def tanh(x, integer_bits):
    """``tanh(x)``, as `logistic`."""
    denominator = _reciprocal(_exp_on_negative(-np.abs(x), integer_bits + 1))
    size = int16((denominator - (1 << 13)) << 2)
    return np.where(x < 0, -size, np.where(x == 0, 0, size))


def _high_mul(a, b):
    """``(a * b + 2**14) >> 15``, saturated (``SaturatingRoundingDoublingHighMul``)."""
    return np.minimum((a * b + (1 << 14)) >> 15, ONE)


def _constant(value):
    """A constant of 31 fractional bits in 15."""
    return (value + (1 << 15)) >> 16


def _exp_on_negative(x, integer_bits):
    """``exp(x)`` for ``x <= 0``, in 15 fractional bits (``exp_on_negative_values``)."""
    x = np.asarray(x, np.int64)
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    rest = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(int16(rest << integer_bits))
    remainder = rest - x
    for power, factor in EXP_STEPS:
        if integer_bits > power:
            bit = (remainder >> (fraction + power)) & 1
            result = np.where(bit, _high_mul(result, _constant(factor)), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << (fraction + 5)), 0, result)
    return np.where(x == 0, ONE, result)


def _exp_near_zero(a):
    """``exp(a)`` for ``-1/4 <= a < 0``, by a polynomial at -1/8."""
    x = a + (1 << 12)
    x2 = _high_mul(x, x)
    x3, x4 = _high_mul(x2, x), _high_mul(x2, x2)
    third = _high_mul(wrap16(round_shift(x4, 2) + x3), _constant(715827883))
    factor = _constant(1895147668)
    return int16(factor + _high_mul(factor, wrap16(x + round_shift(wrap16(third + x2), 1))))


def _reciprocal(a):
    """``2 / (1 + a)`` for ``0 <= a < 1``, in 13 fractional bits: three Newton steps."""
    half = (a + ONE + 1) >> 1  # (a + 1) / 2, rounded half up
    x = wrap16(_constant(1515870810) + _high_mul(half, _constant(-1010580540)))
    for _ in range(3):
        error = wrap16((1 << 13) - _high_mul(half, x))
        x = wrap16(x + int16(_high_mul(x, error) << 2))
    return x
