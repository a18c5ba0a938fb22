"""Fixed-point arithmetic of TFLite, in 64-bit numpy: the same bits as its C++ code in 32.

Source: TFLite Micro, ``kernels/internal/common.h``.
"""

import math

import numpy as np

from weft.models.kernels.gemmlowp import INT32, round_shift

__all__ = [
    "clamp", "high_mul", "logistic", "multiplier_of", "multiply", "multiply_wide", "reciprocal",
    "round_shift", "tanh", "wrap32",
]

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


def logistic(x):
    """``1 / (1 + exp(-x))``; x in 27 fractional bits, the result in 31."""
    return INT32.logistic(np.asarray(x, np.int64), 4)


def tanh(x):
    """``tanh(x)``; x in 27 fractional bits, the result in 31."""
    return INT32.tanh(np.asarray(x, np.int64), 4)
