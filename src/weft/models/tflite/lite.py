"""Operators as LiteRT computes them with its default kernels, where TFLite Micro differs.

Each function returns `weft.models.ir.Host.single`: a kernel and its attributes, or None where the
results are the ones of TFLite Micro. XNNPACK computes ratios of scales in float32, and leaves those
that are too small or too large to other kernels.
"""

import math

import numpy as np

from weft.models.kernels.fixed_point import high_mul, multiply
from weft.models.tflite.scales import half_away, multiplier_and_shift, per_tensor

__all__ = [
    "clip", "concatenation", "converted", "elu", "leaky_relu", "leaky_relu16", "logistic",
    "product", "quantize", "reduction", "resize_bilinear", "sigmoid16", "softmax", "square", "tanh",
    "total",
]


# Tables of functions of an 8-bit value. A table is None where LiteRT computes the one of TFLite
# Micro (`weft.models.tflite.unary`).
#
# Sources: XNNPACK, ``unary-elementwise-nc.c``, ``reference/unary-elementwise.cc``,
# ``microparams-init.c``, ``qs8-vcvt``, ``qs8-vlrelu``.

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


# Kernels and their attributes.

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
BITS = 20  # of the larger multiplier of a sum


def total(operator, tensors, sign, low, high):
    """``a + sign * b``; ``tensors``: a, b and y."""
    (a, a_zero), (b, b_zero), (y, zero) = (per_tensor(operator, tensor) for tensor in tensors)
    ratios = [float(np.float32(scale) / np.float32(y)) for scale in (a, b)]
    if tensors[2].dtype not in BYTES or not all(2.0**-10 <= ratio < 2.0**8 for ratio in ratios):
        return None
    shift = BITS + 1 - math.frexp(max(ratios))[1]
    first, second = (round(math.ldexp(ratio, shift)) for ratio in ratios)
    return "litert.add", {
        "zeros": (a_zero, b_zero), "multipliers": (first, sign * second), "shift": shift,
        "zero": zero, "low": low, "high": high,
    }


def product(operator, tensors, low, high):
    """``a * b``; ``tensors``: a, b and y."""
    (a, a_zero), (b, b_zero), (y, zero) = (per_tensor(operator, tensor) for tensor in tensors)
    scale = float(np.float32(a) * np.float32(b) / np.float32(y))
    if tensors[2].dtype not in BYTES or not 2.0**-16 <= scale < 2.0**8:
        return None
    return "litert.mul", {
        "zeros": (a_zero, b_zero), "scale": scale, "zero": zero, "low": low, "high": high,
    }


def square(operator, x, y, low, high):
    """``x * x``, where both operands of a product are one tensor."""
    if product(operator, (x, x, y), low, high) is None:
        return None
    (scale, zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    return "litert.square", {
        "scales": (scale, y_scale), "zeros": (zero, y_zero), "low": low, "high": high,
    }


def reduction(operator, x, y, axes, mean):
    """The sum of x along the axes, or the mean."""
    (scale, zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    if x.dtype not in BYTES:
        return None
    ratio = np.float32(scale) / np.float32(y_scale)
    if mean:
        ratio = ratio / np.float32(math.prod(x.shape[axis] for axis in axes))
    return "litert.sum", {
        "axes": axes, "shape": y.shape, "scale": float(ratio), "zeros": (zero, y_zero),
    }


def resize_bilinear(attributes):
    """A map in another size, with the attributes of the kernel ``tflite.resize_bilinear``."""
    return "litert.resize_bilinear", attributes


def concatenation(operator, tensors, y, axis):
    """uint8 values with other scales than y."""
    scales = [per_tensor(operator, tensor) for tensor in tensors]
    scale, zero = per_tensor(operator, y)
    if {*scales} == {(scale, zero)}:
        return None
    inverse = np.float32(1) / np.float32(scale)
    return "litert.concatenation", {
        "axis": axis, "scales": tuple(float(np.float32(s) * inverse) for s, _ in scales),
        "zeros": tuple(z for _, z in scales), "zero": zero,
        "moved": tuple(pair == (scale, zero) for pair in scales),
    }


def softmax(operator, x, y, beta):
    """``exp(beta * x)``, divided by its sum along the last axis."""
    factor = np.float32(per_tensor(operator, x)[0]) * np.float32(beta)
    arguments = factor * np.arange(-255, 1).astype(np.float32)
    exponentials = np.array([math.exp(value) for value in arguments.tolist()], np.float32)
    return "litert.softmax", {
        "exponentials": exponentials, "scale": per_tensor(operator, y)[0], "dtype": str(y.dtype),
        "zero": 0 if y.dtype == np.uint8 else per_tensor(operator, y)[1],
    }


def quantize(scale, zero, dtype):
    """float32 to an integer type."""
    return "litert.quantize", {"scale": scale, "zero": zero, "dtype": str(dtype)}


def leaky_relu16(operator, x, y, alpha):
    """``x``, or ``alpha * x`` below 0, of int16: the ratios are float32."""
    (scale, zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    below = np.float32(scale) * np.float32(alpha) / np.float32(y_scale)
    ratios = np.float32(scale) / np.float32(y_scale), below
    pairs = [multiplier_and_shift(operator, float(ratio)) for ratio in ratios]
    return "litert.leaky_relu", {
        "zeros": (zero, y_zero), "multipliers": tuple(m for m, _ in pairs),
        "shifts": tuple(s for _, s in pairs),
    }


SIGMOIDS = {"tflite.logistic16": ("litert.logistic16", 1), "tflite.tanh16": ("litert.tanh16", 2)}


def sigmoid16(kernel, scale):
    """LOGISTIC or TANH of int16, by the kernel of TFLite Micro: gemmlowp's, for some scales."""
    name, count = SIGMOIDS[kernel]
    shifts = {2.0 ** (shift - 12): shift for shift in range(count)}
    return (name, {"shift": shifts[scale]}) if scale in shifts else None
