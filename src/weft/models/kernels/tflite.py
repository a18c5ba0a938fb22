"""Kernels of TFLite's operators, bit by bit as TFLite Micro: arithmetic, pools, and functions.

A kernel takes a list of arrays and a dict of attributes, and returns the list of its outputs. Its
docstring names the attributes; x is the input and y the output.
"""

import math
import operator

import numpy as np

from weft.models.kernels.fixed_point import (
    INT32,
    clamp,
    high_mul,
    multiply,
    reciprocal,
    round_shift,
    wrap32,
)

__all__ = [
    "KERNELS", "MAX_WINDOW", "SIGMOID", "exponentials", "leaky_relu", "logistic16", "neighbours",
    "tanh16", "terms",
]


# TFLite's arithmetic of two operands: sums, products and comparisons.
#
# Quantized operands are brought to a common scale by fixed-point multipliers. Attributes that are
# pairs have one entry for each input.
#
# Sources: TFLite Micro, ``add.cc``, ``sub.cc``, ``mul.cc``, ``comparisons.cc``, ``prelu.cc``.

def _scaled(x, multiplier, shift):
    """``MultiplyByQuantizedMultiplierSmallerThanOneExp``: shift is 0 or less."""
    return round_shift(high_mul(x, multiplier), -shift)


def terms(inputs, attributes):
    """Both quantized operands in the common scale, by the attributes of `_linear`.

    ``((x - zero) << left_shift) * multiplier * 2**(shift - 31)``, rounded, for each x.
    """
    return [
        _scaled((x.astype(np.int64) - zero) << attributes["left_shift"], multiplier, shift)
        for x, zero, multiplier, shift in zip(
            inputs, attributes["zeros"], attributes["multipliers"], attributes["shifts"],
            strict=True,
        )
    ]


def _linear(function):
    """``function`` of both `terms`, scaled to y.

    ``zeros``, ``multipliers``, ``shifts`` : pairs; ``left_shift``; ``multiplier``, ``shift``,
    ``zero``, ``low``, ``high`` of y.
    """

    def kernel(inputs, attributes):
        total = function(*terms(inputs, attributes))
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
    """The attributes are those of `_linear`; the square of the difference is scaled."""
    a, b = terms(inputs, attributes)
    square = (a - b) * (a - b)
    y = multiply(square, attributes["multiplier"], attributes["shift"]) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], inputs[0].dtype)]


def _unquantized(function):
    """Of float32, int32 or int64; ``low``, ``high`` : numbers or None."""

    def kernel(inputs, attributes):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            y = function(*inputs)
        return _clip([y], attributes)

    return kernel


def _compare(function):
    """Of raw values, or of quantized ones with the attributes of `terms`."""

    def kernel(inputs, attributes):
        if "multipliers" in attributes:
            inputs = terms(inputs, attributes)
        return [function(*inputs)]

    return kernel


def _prelu(inputs, attributes):
    """``x`` scaled by ``multipliers[0]``, or ``x * slope`` by ``multipliers[1]`` if ``x < 0``.

    ``zeros`` : of x and slope; ``multipliers``, ``shifts`` : pairs; ``zero`` of y.
    """
    x, slope = (
        v.astype(np.int64) - zero for v, zero in zip(inputs, attributes["zeros"], strict=True)
    )
    (positive, negative), (positive_shift, negative_shift) = (
        attributes["multipliers"], attributes["shifts"],
    )
    y = attributes["zero"] + np.where(
        x >= 0, multiply(x, positive, positive_shift), multiply(x * slope, negative, negative_shift)
    )
    limits = np.iinfo(inputs[0].dtype)
    return [clamp(y, limits.min, limits.max, inputs[0].dtype)]


def _prelu_float(inputs, attributes):
    """float32: x, or ``x * slope`` if ``x < 0``; no attributes."""
    x, slope = inputs
    return [np.where(x >= 0, x, x * slope)]


# TFLite's pools and reductions, and resizing of maps.
#
# Sources: TFLite Micro, ``integer_ops/pooling.h``, ``reference/reduce.h``,
# ``reference/resize_bilinear.h``, ``reference/resize_nearest_neighbor.h``.

# Rows or columns of a pool. `_taps` loops over the elements of a window, so a larger one would take
# long. `weft.models.tflite.reducing` leaves it to the runtime; a file of a program is checked here.
MAX_WINDOW = 256


def _quotient(a, b):
    """``a / b`` truncated, as C divides."""
    return np.sign(a) * (np.abs(a) // b)


def _taps(x, attributes):
    """For each element of the window, the inputs of all outputs, and where they are inside.

    Yields x [batch, rows, columns, channels] and bool [1, rows, columns, 1], in the size of y.
    """
    (kh, kw), (sh, sw), (top, left) = (
        attributes["kernel_size"], attributes["stride"], attributes["padding"],
    )
    if max(kh, kw) > MAX_WINDOW:
        raise ValueError(f"a pool must have at most {MAX_WINDOW} rows and columns, not {kh}, {kw}")
    oh, ow = attributes["output"]
    for ky in range(kh):
        for kx in range(kw):
            row = (np.arange(oh) * sh + ky - top)[:, None]
            column = np.arange(ow) * sw + kx - left
            inside = (row >= 0) & (row < x.shape[1]) & (column >= 0) & (column < x.shape[2])
            # Outside, this is some element of x, which the caller does not use.
            row, column = row.clip(0, x.shape[1] - 1), column.clip(0, x.shape[2] - 1)
            yield x[:, row, column], inside[None, :, :, None]


def _average_pool(inputs, attributes):
    """``kernel_size``, ``stride``, ``padding`` (top, left), ``output`` : pairs.

    ``low``, ``high`` : limits of y.
    """
    [x] = inputs
    dtype = np.float32 if x.dtype == np.float32 else np.int64
    total, count = dtype(0), 0
    for tap, inside in _taps(x, attributes):
        total = total + np.where(inside, tap.astype(dtype), dtype(0))
        count = count + inside.astype(np.int64)
    if not np.all(count):
        raise ValueError("each window of a pool must have an input")
    if dtype == np.int64:
        y = _quotient(total + np.where(total > 0, count // 2, -(count // 2)), count)
    else:
        y = total / count.astype(np.float32)
    return [clamp(y, attributes["low"], attributes["high"], x.dtype)]


def _max_pool(inputs, attributes):
    """The attributes are those of `_average_pool`."""
    [x] = inputs
    least = np.finfo(np.float32).min if x.dtype == np.float32 else np.iinfo(x.dtype).min
    y = x.dtype.type(least)
    for tap, inside in _taps(x, attributes):
        y = np.maximum(y, np.where(inside, tap, x.dtype.type(least)))
    return [clamp(y, attributes["low"], attributes["high"], x.dtype)]


def _mean(inputs, attributes):
    """``axes``; ``shape`` of y; ``zeros`` of x and y; ``multiplier``, ``shift`` : of the scale.

    The sum is scaled by ``x_scale / y_scale / n``, whose multiplier is rounded down.
    """
    [x] = inputs
    count = math.prod(x.shape[axis] for axis in attributes["axes"])
    if not count:
        raise ValueError("a mean must be of 1 value or more, not 0")
    # As reduce.h: the multiplier gets more bits before the division, so that the quotient is as
    # exact as the multiplier was; the shift takes them back.
    extra_bits = min(count.bit_length() - 1, 32, 31 + attributes["shift"])
    multiplier = int(_quotient(np.int64(attributes["multiplier"] << extra_bits), count))
    return _scaled_sum(x, count, multiplier, attributes["shift"] - extra_bits, attributes)


def _sum(inputs, attributes):
    """The attributes are those of `_mean`; the sum is not divided."""
    [x] = inputs
    count = math.prod(x.shape[axis] for axis in attributes["axes"])
    return _scaled_sum(x, count, attributes["multiplier"], attributes["shift"], attributes)


def _scaled_sum(x, count, multiplier, shift, attributes):
    zero, y_zero = attributes["zeros"]
    total = x.sum(attributes["axes"], dtype=np.int64) - zero * count
    y = multiply(total, multiplier, shift) + y_zero
    limits = np.iinfo(x.dtype)
    return [clamp(y, limits.min, limits.max, x.dtype).reshape(attributes["shape"])]


def _half_away(x):
    """float32 rounded to nearest, ties away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), np.float32(0))


def _resize_nearest(inputs, attributes):
    """``size`` : rows and columns of y; ``align_corners``, ``half_pixel_centers`` : bool."""
    [x] = inputs
    half = np.float32(0.5 if attributes["half_pixel_centers"] else 0)
    indices = []  # of rows, of columns
    for size_in, size_out in zip(x.shape[1:3], attributes["size"], strict=True):
        corners = attributes["align_corners"] and size_out > 1
        scale = np.float32(size_in - corners) / np.float32(size_out - corners)
        position = (np.arange(size_out, dtype=np.float32) + half) * scale
        position = _half_away(position) if attributes["align_corners"] else np.floor(position)
        indices.append(position.astype(np.int64).clip(0, size_in - 1))
    return [x[:, indices[0][:, None], indices[1]]]


def _resize_bilinear(inputs, attributes):
    """8-bit values. The attributes are those of `_resize_nearest`.

    Positions have 10 fractional bits: 1024 is the distance of two inputs.
    """
    [x] = inputs
    (y0, y1, fy), (x0, x1, fx) = (
        neighbours(size_in, size_out, attributes)
        for size_in, size_out in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    fy, fx = (fy - 1024 * y0)[:, None, None], (fx - 1024 * x0)[None, :, None]
    wide = x.astype(np.int64)
    upper, lower = wide[:, y0], wide[:, y1]
    total = (
        upper[:, :, x0] * (1024 - fy) * (1024 - fx) + lower[:, :, x0] * fy * (1024 - fx)
        + upper[:, :, x1] * (1024 - fy) * fx + lower[:, :, x1] * fy * fx
    )
    y = _quotient(total + np.where(total > 0, 1 << 19, -(1 << 19)), 1 << 20)
    return [y.astype(x.dtype)]


def neighbours(size_in, size_out, attributes):
    """Lower and upper neighbour of each output along one axis, and its position times 1024."""
    scale = ((size_in << 10) + size_out // 2) // size_out
    if attributes["align_corners"] and size_out > 1:
        scale = (((size_in - 1) << 10) + (size_out - 1) // 2) // (size_out - 1)
    position = np.arange(size_out) * scale
    if attributes["half_pixel_centers"]:
        position = position + scale // 2 - 512
    lower, upper = _quotient(position, 1024), _quotient(position + 1023, 1024)
    return lower.clip(0), upper.clip(None, size_in - 1), position


# TFLite's functions of one operand: conversions, softmax, activations and the sigmoid.
#
# Sources: TFLite Micro, ``quantize_common.cc``, ``dequantize.cc``, ``reference/softmax.h``,
# ``cast.cc``.

def _quantize(inputs, attributes):
    """``round(x / scale) + zero`` in float32, ties away from zero; ``dtype`` : str."""
    with np.errstate(over="ignore"):
        x = inputs[0] / np.float32(attributes["scale"])
    x = np.nan_to_num(x, nan=0.0, posinf=2.0**30, neginf=-(2.0**30)).clip(-(2.0**30), 2.0**30)
    limits = np.iinfo(attributes["dtype"])
    y = _half_away(x).astype(np.int64) + attributes["zero"]
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
    """Along the last axis.

    ``multiplier``, ``left_shift`` : of the differences; ``least`` : the lowest difference that
    counts; ``dtype`` : str.
    """
    [x] = inputs
    dtype = np.dtype(attributes["dtype"])
    powers = exponentials(attributes)[x.max(-1, keepdims=True) - x.astype(np.int64)]
    # Fixed-point numbers as in softmax.h: exponentials have no integer bits, and their sum 12.
    scale, shift = reciprocal(round_shift(powers, 12).sum(-1, keepdims=True), 12)
    y = round_shift(high_mul(scale, powers), shift + 31 - 8 * dtype.itemsize)
    limits = np.iinfo(dtype)
    return [clamp(y + limits.min, limits.min, limits.max, dtype)]


def exponentials(attributes) -> np.ndarray:
    """Return ``exp(-d)`` of softmax for all differences d of 8-bit values, int64 [256].

    The numbers have 31 fractional bits, the scaled differences 26. ``attributes`` are those of the
    kernel ``tflite.softmax``.
    """
    steps = -np.arange(256)
    scaled = high_mul(wrap32(steps << attributes["left_shift"]), attributes["multiplier"])
    return np.where(steps >= attributes["least"], INT32.exp_on_negative(scaled, 5), 0)


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

    A product with a negative multiplier is negated after it is rounded, so ties that `high_mul`
    would round up go down.
    """
    (positive, negative), (positive_shift, negative_shift) = multipliers, shifts
    below = np.sign(negative) * multiply(x, abs(negative), negative_shift)
    return np.where(x >= 0, multiply(x, positive, positive_shift), below)


def _leaky_relu_quantized(inputs, attributes):
    """int16; ``zeros``; ``multipliers``, ``shifts`` of positive and negative x."""
    zero, y_zero = attributes["zeros"]
    x = inputs[0].astype(np.int64) - zero
    y = leaky_relu(x, attributes["multipliers"], attributes["shifts"]) + y_zero
    limits = np.iinfo(inputs[0].dtype)
    return [clamp(y, limits.min, limits.max, inputs[0].dtype)]


# sigmoid(i / 24) in 16 fractional bits. TFLite's table is higher by 1 in these entries.
SIGMOID = np.rint(65536 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64)
SIGMOID[[
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41,
    43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
]] += 1


def _sigmoid_at(x, multiplier, shift, bits, highest):
    """``x`` in parts of the table's steps, and the table at ``abs(x)``.

    A step has ``2**bits`` parts. The value has 16 + ``bits`` fractional bits; behind the table it
    is ``highest``, with 16.
    """
    x = (x.astype(np.int64) * multiplier + (1 << shift >> 1)) >> shift
    size = np.abs(x)
    index, rest = (size >> bits).clip(0, 254), size & ((1 << bits) - 1)
    value = (SIGMOID[index] << bits) + rest * (SIGMOID[index + 1] - SIGMOID[index])
    return x, np.where(size >> bits >= 255, highest << bits, value)


def logistic16(x, multiplier, shift):
    """``1 / (1 + exp(-x))`` of 16 bits, as int64; scaled to steps of 1 / (24 * 512) before."""
    # The value has 25 fractional bits, the result 15. Ties go up from 0 on, and down below.
    x, value = _sigmoid_at(x, multiplier, shift, 9, 0x7FFF << 1)
    return np.where(x >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10


def tanh16(x, multiplier, shift):
    """``tanh(x) = 2 * sigmoid(2 * x) - 1``, as `logistic16`."""
    # In the table's steps of 2 * x, value has 24 fractional bits. Twice value - 1/2 has 23 of them,
    # and the result 15. Ties go up from 0 on, and down below, as in `logistic16`.
    x, value = _sigmoid_at(x, multiplier, shift, 8, 0xFFFF)
    half = 1 << 23
    return np.where(x >= 0, value - half + 128, half - value + 127) >> 8


def _of_int16(function):
    """A kernel of ``function`` for int16; ``multiplier``, ``shift`` : of the function."""

    def kernel(inputs, attributes):
        y = function(inputs[0], attributes["multiplier"], attributes["shift"])
        return [y.astype(np.int16)]

    return kernel


_COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt,
    "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
}

KERNELS = {
    "tflite.add": _linear(np.add), "tflite.sub": _linear(np.subtract), "tflite.mul": _mul,
    "tflite.squared_difference": _squared_difference,
    "tflite.plain_add": _unquantized(np.add), "tflite.plain_sub": _unquantized(np.subtract),
    "tflite.plain_mul": _unquantized(np.multiply), "tflite.plain_div": _unquantized(np.divide),
    "tflite.plain_squared_difference": _unquantized(lambda a, b: (a - b) * (a - b)),
    "tflite.prelu": _prelu, "tflite.prelu_float": _prelu_float,
    **{f"tflite.{name}": _compare(function) for name, function in _COMPARISONS.items()},
    "tflite.average_pool": _average_pool, "tflite.max_pool": _max_pool, "tflite.mean": _mean,
    "tflite.sum": _sum, "tflite.resize_nearest": _resize_nearest,
    "tflite.resize_bilinear": _resize_bilinear,
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
