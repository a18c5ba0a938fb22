"""Tables of functions of an 8-bit value as LiteRT computes them, with its default kernels.

A table is None where LiteRT computes the one of TFLite Micro (`weft.models.tflite.tables`).

Sources: XNNPACK, ``unary-elementwise-nc.c``, ``reference/unary-elementwise.cc``,
``microparams-init.c``, ``qs8-vcvt``, ``qs8-vlrelu``.
"""

import math

import numpy as np

from weft.models.kernels.fixed_point import high_mul, multiply
from weft.models.tflite.scales import half_away, multiplier_and_shift, per_tensor

__all__ = ["clip", "converted", "elu", "leaky_relu", "logistic", "tanh"]

LEAST, MOST = 2.0**-8, 2.0**7  # of a ratio of scales that XNNPACK takes


def _steps(x):
    """All values of the type of x, in the order of their bytes, minus its zero point."""
    return np.arange(256, dtype=np.uint8).view(x.dtype).astype(np.int64) - x.quantization.zero


def _limited(values, y):
    limits = np.iinfo(y.dtype)
    return np.clip(values + y.quantization.zero, limits.min, limits.max).astype(y.dtype)


def _of_function(function, operator, x, y):
    """A function of float32; ties round to even."""
    (scale, _), (y_scale, _) = per_tensor(operator, x), per_tensor(operator, y)
    arguments = np.float32(scale) * _steps(x).astype(np.float32)
    results = np.array([function(value) for value in arguments.tolist()], np.float32)
    return _limited(np.rint(results / np.float32(y_scale)).astype(np.int64), y)


def logistic(operator, x, y):
    """``1 / (1 + exp(-x))``."""
    return _of_function(lambda v: 1 / (1 + math.exp(min(-v, 700.0))), operator, x, y)


def tanh(operator, x, y):
    """``tanh(x)``."""
    return _of_function(math.tanh, operator, x, y)


def elu(operator, x, y):
    """``x``, or ``exp(x) - 1`` below 0; the zero point is added in float32, then ties to even."""
    (scale, _), (y_scale, zero) = per_tensor(operator, x), per_tensor(operator, y)
    arguments = np.float32(scale) * _steps(x).astype(np.float32)
    results = [v if v >= 0 else math.expm1(v) for v in arguments.tolist()]
    inverse = np.float32(1) / np.float32(y_scale)
    with np.errstate(over="ignore"):
        steps = np.array(results, np.float32) * inverse + np.float32(zero)
    limits = np.iinfo(y.dtype)
    return np.rint(steps.clip(limits.min, limits.max)).astype(y.dtype)


def clip(low, high, operator, x, y):
    """``x`` in the scale of y, limited to ``low..high``."""
    (scale, _), (y_scale, _) = per_tensor(operator, x), per_tensor(operator, y)
    values = multiply(_steps(x), *multiplier_and_shift(operator, scale / y_scale))
    with np.errstate(over="ignore"):
        bounds = [half_away(float(np.float32(v) / np.float32(y_scale))) for v in (low, high)]
    return _limited(values.clip(*bounds), y)


def converted(operator, x, y):
    """``x`` in another scale; the ratio of the scales has 8 fractional bits.

    From int8 to uint8, or back, it has 31 bits, and results are rounded twice, ties up.
    """
    (scale, _), (y_scale, _) = per_tensor(operator, x), per_tensor(operator, y)
    if {x.dtype, y.dtype} == {np.dtype(np.int8), np.dtype(np.uint8)}:
        multiplier, shift = multiplier_and_shift(operator, scale / y_scale)
        values = high_mul(_steps(x) << max(shift, 0), multiplier)
        return _limited((values + (1 << max(-shift, 0) >> 1)) >> max(-shift, 0), y)
    ratio = np.float32(scale) / np.float32(y_scale)
    if x.dtype != y.dtype or not LEAST <= ratio <= MOST:
        return None
    return _limited((_steps(x) * round(float(ratio) * 256) + 128) >> 8, y)


def leaky_relu(alpha, operator, x, y):
    """``x``, or ``alpha * x`` below 0; both ratios have 8 fractional bits."""
    (scale, _), (y_scale, _) = per_tensor(operator, x), per_tensor(operator, y)
    ratio = np.float32(scale) / np.float32(y_scale)
    below = ratio * np.float32(alpha)
    if not LEAST <= ratio <= MOST or not LEAST <= abs(below) <= MOST:
        return None
    values = _steps(x)
    factors = np.where(values >= 0, round(float(ratio) * 256), round(float(below) * 256))
    return _limited((values * factors + 128) >> 8, y)
