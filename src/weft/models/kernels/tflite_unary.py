"""TFLite's conversions between scales and types, softmax, and functions of one float32 value.

Sources: TFLite Micro, ``quantize_common.cc``, ``dequantize.cc``, ``reference/softmax.h``,
``cast.cc``.
"""

import numpy as np

from weft.models.kernels.fixed_point import (
    clamp,
    high_mul,
    multiply,
    reciprocal,
    round_shift,
    wrap32,
)
from weft.models.kernels.gemmlowp import INT32

__all__ = ["KERNELS", "leaky_relu", "logistic16", "tanh16"]


def _quantize(inputs, attributes):
    """``round(x / scale) + zero`` in float32, ties away from zero; ``dtype`` : str."""
    with np.errstate(over="ignore"):
        x = inputs[0] / np.float32(attributes["scale"])
    x = np.nan_to_num(x, nan=0.0, posinf=2.0**30, neginf=-(2.0**30)).clip(-(2.0**30), 2.0**30)
    whole = np.trunc(x)
    whole = whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)
    limits = np.iinfo(attributes["dtype"])
    y = whole.astype(np.int64) + attributes["zero"]
    return [clamp(y, limits.min, limits.max, attributes["dtype"])]


def _requantize(inputs, attributes):
    """``zeros`` : of x and y; ``multiplier``, ``shift``; ``dtype`` : str."""
    zero, y_zero = attributes["zeros"]
    y = multiply(
        inputs[0].astype(np.int64) - zero, attributes["multiplier"], attributes["shift"]
    )
    limits = np.iinfo(attributes["dtype"])
    return [clamp(y + y_zero, limits.min, limits.max, attributes["dtype"])]


def _dequantize(inputs, attributes):
    """``float32(scale * (x - zero))``, the product in double; float16 is converted."""
    [x] = inputs
    if x.dtype == np.float16:
        return [x.astype(np.float32)]
    return [(attributes["scale"] * (x.astype(np.int64) - attributes["zero"])).astype(np.float32)]


def _cast(inputs, attributes):
    """``dtype`` : str. Numbers with a fraction are truncated."""
    with np.errstate(invalid="ignore", over="ignore"):
        return [inputs[0].astype(attributes["dtype"])]


def _softmax(inputs, attributes):
    """Along the last axis. ``multiplier``, ``left_shift`` : of the differences; ``least`` : the
    lowest difference that counts; ``dtype`` : str."""
    [x] = inputs
    kind = np.dtype(attributes["dtype"])
    difference = x.astype(np.int64) - x.max(-1, keepdims=True)
    steps = np.arange(-255, 1)
    scaled = high_mul(wrap32(steps << attributes["left_shift"]), attributes["multiplier"])
    exponentials = np.where(steps >= attributes["least"], INT32.exp_on_negative(scaled, 5), 0)
    terms = exponentials[difference + 255]
    scale, over = reciprocal(round_shift(terms, 12).sum(-1, keepdims=True), 12)
    y = round_shift(high_mul(scale, terms), over + 31 - 8 * kind.itemsize)
    limits = np.iinfo(kind)
    return [clamp(y + limits.min, limits.min, limits.max, kind)]


def _exact(function):
    """A function that IEEE 754 rounds correctly, so that all machines agree."""

    def kernel(inputs, attributes):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return [function(inputs[0]).astype(inputs[0].dtype)]

    return kernel


def _clip(inputs, attributes):
    """``low``, ``high`` : numbers or None."""
    y = inputs[0]
    if attributes["low"] is not None:
        y = np.maximum(y, y.dtype.type(attributes["low"]))
    if attributes["high"] is not None:
        y = np.minimum(y, y.dtype.type(attributes["high"]))
    return [y]


def _leaky_relu(inputs, attributes):
    """float32; ``alpha`` : float."""
    x = inputs[0]
    return [np.where(x > 0, x, x * np.float32(attributes["alpha"]))]


def leaky_relu(x, multipliers, shifts):
    """``x`` times the first multiplier from 0 on, and times the second one below.

    A product with a negative multiplier is negated after it is rounded: this is where ties go.
    """
    (m, n), (s, t) = multipliers, shifts
    return np.where(x >= 0, multiply(x, m, s), np.sign(n) * multiply(x, abs(n), t))


def _leaky_relu_quantized(inputs, attributes):
    """int16; ``zeros``; ``multipliers``, ``shifts`` of positive and negative x."""
    zero, y_zero = attributes["zeros"]
    x = inputs[0].astype(np.int64) - zero
    y = leaky_relu(x, attributes["multipliers"], attributes["shifts"]) + y_zero
    limits = np.iinfo(inputs[0].dtype)
    return [clamp(y, limits.min, limits.max, inputs[0].dtype)]


# sigmoid(i / 24) in 16 fractional bits. TFLite's table is higher by 1 in these entries.
_SIGMOID = np.rint(65536 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64)
_SIGMOID[[
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41,
    43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
]] += 1


def _sigmoid_at(x, multiplier, shift, bits, highest):
    """``x`` in the table's steps, and the table at ``abs(x)``, interpolated by ``bits``."""
    x = (x.astype(np.int64) * multiplier + (1 << shift >> 1)) >> shift
    size = np.abs(x)
    place, rest = (size >> bits).clip(0, 254), size & ((1 << bits) - 1)
    value = (_SIGMOID[place] << bits) + rest * (_SIGMOID[place + 1] - _SIGMOID[place])
    return x, np.where(size >> bits >= 255, highest << bits, value)


def logistic16(x, multiplier, shift):
    """``1 / (1 + exp(-x))`` of 16 bits, as int64; scaled to steps of 1 / (24 * 512) before."""
    x, value = _sigmoid_at(x, multiplier, shift, 9, 0x7FFF << 1)
    return np.where(x >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10


def tanh16(x, multiplier, shift):
    """``tanh(x) = 2 * sigmoid(2 * x) - 1``, as `logistic16`."""
    x, value = _sigmoid_at(x, multiplier, shift, 8, 0xFFFF)
    half = 1 << 23
    return np.where(x >= 0, value - half + 128, half - value + 127) >> 8


def _of_int16(function):
    """``multiplier``, ``shift``."""

    def kernel(inputs, attributes):
        y = function(inputs[0], attributes["multiplier"], attributes["shift"])
        return [y.astype(np.int16)]

    return kernel


KERNELS = {
    "tflite.logistic16": _of_int16(logistic16), "tflite.tanh16": _of_int16(tanh16),
    "tflite.quantize": _quantize, "tflite.requantize": _requantize,
    "tflite.dequantize": _dequantize, "tflite.cast": _cast, "tflite.softmax": _softmax,
    "tflite.clip": _clip, "tflite.leaky_relu": _leaky_relu,
    "tflite.leaky_relu_quantized": _leaky_relu_quantized,
    "tflite.sqrt": _exact(np.sqrt), "tflite.rsqrt": _exact(lambda x: x.dtype.type(1) / np.sqrt(x)),
    "tflite.abs": _exact(np.abs), "tflite.neg": _exact(np.negative),
    "tflite.square": _exact(np.square), "tflite.floor": _exact(np.floor),
    "tflite.ceil": _exact(np.ceil), "tflite.round": _exact(np.rint),
}
