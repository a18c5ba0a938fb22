"""Tables of functions of an 8-bit value: 256 results, by the byte of x, as TFLite computes them.

Sources: TFLite Micro, ``activations.cc``, ``logistic.cc``, ``tanh.cc``, ``hard_swish_common.cc``,
``leaky_relu_common.cc``, ``elu.cc``, ``exp.cc``; LiteRT, ``LUTPopulate`` for GELU.
"""

import math

import numpy as np

from weft.models.kernels import fixed_point, tflite_unary
from weft.models.kernels.fixed_point import multiplier_of, multiply, round_shift
from weft.models.tflite.scales import half_away, multiplier_and_shift, per_tensor

__all__ = [
    "absolute", "elu", "exp", "gelu", "hard_swish", "leaky_attributes", "leaky_relu", "logistic",
    "relu", "scaled", "tanh",
]


def _values(tensor):
    """All values of the type of ``tensor``, in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(tensor.dtype).astype(np.int64)


def _limited(y, dtype):
    limits = np.iinfo(dtype)
    return np.clip(y, limits.min, limits.max).astype(dtype)


def scaled(x, dtype, x_zero, y_zero, multiplier, shift):
    """``(x - x_zero) * scale + y_zero``."""
    return _limited(multiply(_values(x) - x_zero, multiplier, shift) + y_zero, dtype)


def relu(low, high, operator, x, y):
    """``x`` limited to ``low..high`` (numbers or None), then scaled.

    RELU scales; RELU6 limits the values, whatever the scale of y is.
    """
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    if high is None:
        multiplier, shift = multiplier_and_shift(operator, x_scale / y_scale)
        table = scaled(x, np.int32, x_zero, y_zero, multiplier, shift)
        return _limited(np.maximum(table, y_zero), y.dtype)
    bounds = [x_zero + half_away(float(np.float32(v) / np.float32(x_scale))) for v in (low, high)]
    return _limited(_values(x).clip(*bounds), y.dtype)


def _of_function(function, operator, x, y):
    """A function of float32, rounded: ``LUTPopulate``."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    inverse = np.float32(1) / np.float32(y_scale)
    arguments = np.float32(x_scale) * (_values(x) - x_zero).astype(np.float32)
    results = np.array([function(value) for value in arguments.tolist()], np.float32)
    steps = [half_away(value) for value in (results * inverse).clip(-1e9, 1e9).tolist()]
    return _limited(np.array(steps, np.int64) + y_zero, y.dtype)


def elu(operator, x, y):
    """``x``, or ``exp(x) - 1`` below 0, where ``exp(x)`` is rounded to float32."""
    one = np.float32(1)
    return _of_function(lambda v: v if v >= 0 else np.float32(math.exp(v)) - one, operator, x, y)


def exp(operator, x, y):
    """``exp(x)``."""
    return _of_function(lambda v: math.exp(min(v, 88.0)), operator, x, y)


def gelu(approximate, operator, x, y):
    """``x * erfc(-x / sqrt(2)) / 2``, or its approximation with tanh, each step in float32."""
    f32 = np.float32
    half = f32(0.5)

    def exact(value):
        return half * f32(value) * f32(math.erfc(f32(value) * f32(-math.sqrt(0.5))))

    def near(value):
        v = f32(value)
        inner = f32(math.sqrt(2 / math.pi)) * (v + f32(0.044715) * v * v * v)
        return half * v * (f32(1) + f32(math.tanh(inner)))

    return _of_function(near if approximate else exact, operator, x, y)


def logistic(operator, x, y):
    """``1 / (1 + exp(-x))``; scale and zero point of y are 1/256 and the lowest value."""
    return _fixed(operator, x, y, 8, np.iinfo(y.dtype).min, fixed_point.logistic)


def tanh(operator, x, y):
    """``tanh(x)``; scale and zero point of y are 1/128 and the middle."""
    return _fixed(operator, x, y, 7, np.iinfo(y.dtype).min + 128, fixed_point.tanh)


def _fixed(operator, x, y, bits, zero, function):
    """A function of fixed point, rounded to ``bits`` fractional bits; x beyond +-15 saturates.

    TFLite Micro does not look at the scale of y.
    """
    x_scale, x_zero = per_tensor(operator, x)
    multiplier, shift = multiplier_of(x_scale * 2**27)
    values = _values(x) - x_zero
    largest = math.floor(15 * 2.0 ** (27 - shift))  # in units of 2**(shift - 27)
    inside = np.abs(values) < largest
    steps = round_shift(function(multiply(values * inside, multiplier, shift)), 31 - bits)
    ends = np.where(values > 0, 1 << 8, -(1 << 8))
    return _limited(np.where(inside, steps, ends) + zero, y.dtype)


def absolute(operator, x, y):
    """``abs(x)``."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    values = np.abs(_values(x) - x_zero)
    if x_scale != y_scale:
        values = multiply(values, *multiplier_and_shift(operator, x_scale / y_scale))
    return _limited(values + y_zero, y.dtype)


def leaky_attributes(operator, x, y, alpha):
    """Zero points, and multipliers of positive and negative x."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    ratios = x_scale / y_scale, x_scale * alpha / y_scale
    pairs = [multiplier_and_shift(operator, ratio) for ratio in ratios]
    return {
        "zeros": (x_zero, y_zero), "multipliers": tuple(m for m, _ in pairs),
        "shifts": tuple(s for _, s in pairs),
    }


def leaky_relu(alpha, operator, x, y):
    """``x``, or ``alpha * x`` below 0."""
    attributes = leaky_attributes(operator, x, y, alpha)
    zero, y_zero = attributes["zeros"]
    values = tflite_unary.leaky_relu(
        _values(x) - zero, attributes["multipliers"], attributes["shifts"]
    )
    return _limited(values + y_zero, y.dtype)


def hard_swish(operator, x, y):
    """``x * min(max(x + 3, 0), 6) / 6`` in 16-bit fixed point."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    fine = x_scale / 128
    out, out_exponent = _multiplier16(operator, fine / y_scale)
    inner, exponent = _multiplier16(operator, fine / (3 / 32768))
    values = (_values(x) - x_zero) << 7
    preshift = _high_mul16(values, out)
    gate = values
    if exponent > 0:
        gate = _saturated16(gate << (exponent - 1))
    gate = _high_mul16(gate, inner)
    if exponent > 0:
        gate = _saturated16(gate << 1)
    if exponent < 0:
        gate = round_shift(gate, -exponent)
    gate = (gate + (1 << 15)) >> 1
    product = gate * preshift
    product = np.sign(product) * (np.abs(product) >> 15)
    if out_exponent > 0:
        raise operator.error(f"scale of y must be above {fine}, not {y_scale}")
    return _limited(round_shift(_saturated16(product), -out_exponent) + y_zero, y.dtype)


def _multiplier16(operator, scale):
    """A multiplier of 16 bits (``DownScaleInt32ToInt16Multiplier``), and its exponent."""
    multiplier, shift = multiplier_and_shift(operator, scale)
    if multiplier >= (1 << 31) - 1 - (1 << 15):
        return (1 << 15) - 1, shift
    return (multiplier + (1 << 15)) >> 16, shift


def _saturated16(x):
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


def _high_mul16(a, b):
    """``(a * b + 2**14) >> 15``, saturated."""
    return _saturated16((a * b + (1 << 14)) >> 15)
