"""TFLite's arithmetic of two operands: sums, products and comparisons.

Quantized operands are brought to a common scale by fixed-point multipliers. Attributes that are
pairs have one entry for each input.

Sources: TFLite Micro, ``add.cc``, ``sub.cc``, ``mul.cc``, ``comparisons.cc``, ``prelu.cc``.
"""

import operator

import numpy as np

from weft.models.kernels.fixed_point import clamp, high_mul, multiply, round_shift

__all__ = ["KERNELS"]


def _scaled(x, multiplier, shift):
    """``MultiplyByQuantizedMultiplierSmallerThanOneExp``: shift is 0 or less."""
    return round_shift(high_mul(x, multiplier), -shift)


def _terms(inputs, attributes):
    """Both quantized operands in the common scale."""
    return [
        _scaled((x.astype(np.int64) - zero) << attributes["left_shift"], multiplier, shift)
        for x, zero, multiplier, shift in zip(
            inputs, attributes["zeros"], attributes["multipliers"], attributes["shifts"],
            strict=True,
        )
    ]


def _linear(function):
    """``zeros``, ``multipliers``, ``shifts`` : pairs; ``left_shift``; ``multiplier``, ``shift``,
    ``zero``, ``low``, ``high`` of y."""

    def kernel(inputs, attributes):
        total = function(*_terms(inputs, attributes))
        y = _scaled(total, attributes["multiplier"], attributes["shift"]) + attributes["zero"]
        return [clamp(y, attributes["low"], attributes["high"], inputs[0].dtype)]

    return kernel


def _mul(inputs, attributes):
    """``zeros`` : pair; ``multiplier``, ``shift``, ``zero``, ``low``, ``high`` of y."""
    a, b = (
        x.astype(np.int64) - zero for x, zero in zip(inputs, attributes["zeros"], strict=True)
    )
    y = multiply(a * b, attributes["multiplier"], attributes["shift"]) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], inputs[0].dtype)]


def _squared_difference(inputs, attributes):
    """As the difference; the square is scaled."""
    a, b = _terms(inputs, attributes)
    square = (a - b) * (a - b)
    y = multiply(square, attributes["multiplier"], attributes["shift"]) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], inputs[0].dtype)]


def _plain(function):
    """Of float32, int32 or int64; ``low``, ``high`` : numbers or None."""

    def kernel(inputs, attributes):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            y = function(*inputs)
        for limit, bound in ((attributes["low"], np.maximum), (attributes["high"], np.minimum)):
            if limit is not None:
                y = bound(y, y.dtype.type(limit))
        return [y]

    return kernel


def _compare(function):
    """Of raw values, or of quantized ones with the attributes of `_terms`."""

    def kernel(inputs, attributes):
        if "multipliers" in attributes:
            inputs = _terms(inputs, attributes)
        return [function(*inputs)]

    return kernel


def _prelu(inputs, attributes):
    """``x`` scaled by ``multipliers[0]``, or ``x * slope`` by ``multipliers[1]`` if ``x < 0``.

    ``zeros`` : of x and slope; ``multipliers``, ``shifts`` : pairs; ``zero`` of y.
    """
    x, slope = (
        v.astype(np.int64) - zero for v, zero in zip(inputs, attributes["zeros"], strict=True)
    )
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    y = np.where(x >= 0, multiply(x, m, s), multiply(x * slope, n, t)) + attributes["zero"]
    limits = np.iinfo(inputs[0].dtype)
    return [clamp(y, limits.min, limits.max, inputs[0].dtype)]


def _prelu_float(inputs, attributes):
    x, slope = inputs
    return [np.where(x >= 0, x, x * slope)]


_COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt,
    "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
}
KERNELS = {
    "tflite.add": _linear(np.add), "tflite.sub": _linear(np.subtract), "tflite.mul": _mul,
    "tflite.squared_difference": _squared_difference,
    "tflite.plain_add": _plain(np.add), "tflite.plain_sub": _plain(np.subtract),
    "tflite.plain_mul": _plain(np.multiply), "tflite.plain_div": _plain(np.divide),
    "tflite.plain_squared_difference": _plain(lambda a, b: (a - b) * (a - b)),
    "tflite.prelu": _prelu, "tflite.prelu_float": _prelu_float,
    **{f"tflite.{name}": _compare(function) for name, function in _COMPARISONS.items()},
}
