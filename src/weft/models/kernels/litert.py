"""LiteRT's arithmetic, with its default kernels, where TFLite Micro's differs.

Sources: XNNPACK, ``microparams-init.c``, ``qs8-vadd``, ``qs8-vmul``, ``reduce-nd.c``,
``indirection.c``, ``f32-qs8-vcvt``; LiteRT, ``optimized_ops.h`` (Softmax), ``activations.cc``.
"""

import math

import numpy as np

from weft.models.kernels.fixed_point import INT16, clamp, multiply

__all__ = ["KERNELS", "float_sums", "quantize_rows", "scaled_total"]


def _add(inputs, attributes):
    """``round((a * multipliers[0] + b * multipliers[1]) / 2**shift) + zero``, ties up.

    ``zeros``, ``multipliers`` : pairs; ``shift``, ``zero``, ``low``, ``high`` : int. The
    multiplier of a difference's second operand is negative.
    """
    a, b = (
        (x.astype(np.int64) - zero) * multiplier
        for x, zero, multiplier in zip(
            inputs, attributes["zeros"], attributes["multipliers"], strict=True
        )
    )
    y = (a + b + (1 << attributes["shift"] >> 1)) >> attributes["shift"]
    return [clamp(y + attributes["zero"], attributes["low"], attributes["high"], inputs[0].dtype)]


def _mul(inputs, attributes):
    """``a * b * scale + zero`` in float32, ties to even.

    ``zeros`` : pair; ``scale`` : float; ``zero``, ``low``, ``high`` : int.
    """
    a, b = (
        x.astype(np.int64) - zero for x, zero in zip(inputs, attributes["zeros"], strict=True)
    )
    y = np.rint((a * b).astype(np.float32) * np.float32(attributes["scale"])).astype(np.int64)
    return [clamp(y + attributes["zero"], attributes["low"], attributes["high"], inputs[0].dtype)]


def _square(inputs, attributes):
    """``v * v * (1 / scale of y) + zero of y`` in float32, ties to even; v is x as a float.

    ``scales``, ``zeros`` : of x and y; ``low``, ``high`` : int.
    """
    x, (zero, y_zero) = inputs[0], attributes["zeros"]
    scale, y_scale = (np.float32(number) for number in attributes["scales"])
    v = (x.astype(np.int64) - zero).astype(np.float32) * scale
    y = np.rint(v * v * (np.float32(1) / y_scale) + np.float32(y_zero)).astype(np.int64)
    return [clamp(y, attributes["low"], attributes["high"], x.dtype)]


def scaled_total(total, count, attributes):
    """``total * scale + (zero - count * x_zero * scale)`` in float32, ties to even.

    ``total`` : int64, sums of ``count`` raw values. ``attributes``: ``scale`` : float; ``zeros`` of
    x and y.
    """
    zero, y_zero = attributes["zeros"]
    scale = np.float32(attributes["scale"])
    offset = np.float32(y_zero) - np.float32(count * zero) * scale
    return np.rint(total.astype(np.float32) * scale + offset)


def _sum(inputs, attributes):
    """As `scaled_total`; ``axes``; ``shape`` of y. The scale of a mean is divided by the count."""
    [x] = inputs
    count = math.prod(x.shape[axis] for axis in attributes["axes"])
    y = scaled_total(x.sum(attributes["axes"], dtype=np.int64), count, attributes)
    limits = np.iinfo(x.dtype)
    return [clamp(y, limits.min, limits.max, x.dtype).reshape(attributes["shape"])]


def _resize_bilinear(inputs, attributes):
    """As ``tflite.resize_bilinear``: positions are float32, and weights have 11 bits."""
    [x] = inputs
    (y0, y1, fy), (x0, x1, fx) = (
        neighbours(size_in, size_out, attributes)
        for size_in, size_out in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    fy, fx, wide = fy[:, None, None], fx[:, None], x.astype(np.int64)
    upper, lower = (
        (row[:, :, x0] << 11) + (row[:, :, x1] - row[:, :, x0]) * fx
        for row in (wide[:, y0], wide[:, y1])
    )
    y = ((upper << 11) + (lower - upper) * fy + (1 << 21)) >> 22
    return [y.astype(x.dtype)]


def neighbours(size_in, size_out, attributes):
    """Lower and upper neighbour of each output along one axis, and the upper one's weight."""
    corners = attributes["align_corners"] and size_out > 1
    scale = np.float32(size_in - corners) / np.float32(size_out - corners)
    position = np.arange(size_out, dtype=np.float32) * scale
    if attributes["half_pixel_centers"] and not attributes["align_corners"]:
        half = np.float32(0.5)
        position = (position + (half * scale - half)).clip(0, size_in - 1)
    lower = position.astype(np.int64)
    weight = np.rint((position - lower.astype(np.float32)) * np.float32(2048)).astype(np.int64)
    return lower, (lower + 1).clip(None, size_in - 1), weight


def _concatenation(inputs, attributes):
    """uint8: ``round(x * scale - zero * scale) + zero of y`` in float32, ties away from zero.

    ``axis`` : int; ``scales``, ``zeros``, and whether the bytes are ``moved`` : one for each input;
    ``zero`` : of y.
    """
    parts = []
    for x, scale, zero, moved in zip(
        inputs, attributes["scales"], attributes["zeros"], attributes["moved"], strict=True
    ):
        if not moved:
            factor = np.float32(scale)
            y = x.astype(np.float32) * factor + np.float32(-zero) * factor
            whole = np.trunc(y)
            whole += np.where(np.abs(y - whole) >= 0.5, np.sign(y), np.float32(0))
            x = clamp(whole.astype(np.int64) + attributes["zero"], 0, 255, np.uint8)
        parts.append(x)
    return [np.concatenate(parts, attributes["axis"])]


def _softmax(inputs, attributes):
    """Along the last axis, in float32; sums in the order of the values, ties away from zero.

    ``exponentials`` : float32 [256], of the differences -255..0; ``scale``, ``zero`` : of y;
    ``dtype`` : str.
    """
    [x] = inputs
    difference = x.astype(np.int64) - x.max(-1, keepdims=True)
    terms = attributes["exponentials"][difference + 255]
    total = np.add.accumulate(terms, -1)[..., -1:]
    factor = np.float32(1) / (total * np.float32(attributes["scale"]))
    y = np.floor(terms * factor + np.float32(0.5)).astype(np.int64)
    limits = np.iinfo(attributes["dtype"])
    return [clamp(y + attributes["zero"], limits.min, limits.max, attributes["dtype"])]


def _quantize(inputs, attributes):
    """``x * (1 / scale) + zero`` in float32, ties to even; ``dtype`` : str."""
    with np.errstate(over="ignore"):
        y = inputs[0] * (np.float32(1) / np.float32(attributes["scale"]))
    y = np.nan_to_num(y, nan=2.0**30, posinf=2.0**30, neginf=-(2.0**30)).clip(-(2.0**30), 2.0**30)
    limits = np.iinfo(attributes["dtype"])
    y = np.rint(y).astype(np.int64) + attributes["zero"]
    return [clamp(y, limits.min, limits.max, attributes["dtype"])]


def _leaky_relu(inputs, attributes):
    """int16; ``zeros``; ``multipliers``, ``shifts`` of x from 0 on, and below."""
    zero, y_zero = attributes["zeros"]
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    x = inputs[0].astype(np.int64) - zero
    y = np.where(x >= 0, multiply(x, m, s), multiply(x, n, t)) + y_zero
    limits = np.iinfo(inputs[0].dtype)
    return [clamp(y, limits.min, limits.max, inputs[0].dtype)]


def _of_int16(function):
    """A function of gemmlowp; ``shift`` : to 12 fractional bits."""

    def kernel(inputs, attributes):
        x = INT16.saturate(inputs[0].astype(np.int64) << attributes["shift"])
        return [function(x, 3).astype(np.int16)]

    return kernel


# Dynamic range quantization: LiteRT quantizes rows of float32 while it runs.
#
# A row is what shares a scale: a row of a matrix, a pixel, or a whole image. The sums of its
# product are exact integers; then they become float32 again. LiteRT has two rules: that of XNNPACK,
# and that of its own kernels, for depthwise convolutions.
#
# Sources: XNNPACK, ``quantization.h`` and the kernels ``qd8-f32-qc8w``; TensorFlow Lite,
# ``AsymmetricQuantizeFloats`` and ``depthwiseconv_uint8.h``.

_LOW, _HIGH, _ZERO, _STEPS = (np.float32(number) for number in (-128, 127, 0, 255))


def _quantize_rows(inputs, attributes):
    """``shape`` of x, ``axes`` of a row; ``rule`` : as above; ``padding`` : None, or pairs for the
    height and the width of maps, and ``spread`` as in `weft.models.ir.Window`.

    Outputs: int8 values; float32 scale and int32 zero point of each row. The range of a row
    includes 0. A row with infinity or NaN, or with a range beyond float32, has the scale NaN.
    """
    x = inputs[0].reshape(attributes["shape"])
    q, scale, zero = quantize_rows(x, attributes["axes"], attributes["rule"])
    if attributes["padding"] is not None:
        q = _padded(q, zero.astype(np.int8), attributes["padding"], attributes["spread"])
    return [q, scale, zero]


@np.errstate(all="ignore")  # of rows with infinity or NaN, and of tiny ones
def quantize_rows(x, axes: tuple[int, ...], rule: str):
    """Return the values of rows, which share the index of all other axes: int8, scale, zero."""
    low = np.minimum(x.min(axes, keepdims=True), _ZERO)
    high = np.maximum(x.max(axes, keepdims=True), _ZERO)
    scale, zero, q = _RULES[rule](x, low, high)
    scale = np.where(np.isfinite(high - low), scale, np.float32(np.nan))
    return q.astype(np.int8), scale.astype(np.float32), zero.astype(np.int32)


def _padded(q, zero, padding, spread):
    """Maps [batch, height, width, channels] with zero points around them, and between values."""
    sizes = [(n - 1) * step + 1 for n, step in zip(q.shape[1:3], spread, strict=True)]
    whole = [size + max(0, a) + max(0, b) for size, (a, b) in zip(sizes, padding, strict=True)]
    y = np.array(np.broadcast_to(zero, (len(q), *whole, q.shape[3])))
    rows, columns = (
        slice(max(0, before), max(0, before) + size, step)
        for size, step, (before, _) in zip(sizes, spread, padding, strict=True)
    )
    y[:, rows, columns] = q
    rows, columns = (
        slice(max(0, -before), size - max(0, -after))
        for size, (before, after) in zip(whole, padding, strict=True)
    )
    return np.ascontiguousarray(y[:, rows, columns])


def _factor(factor):
    """``factor``; 0 if it overflows, as it does in a row of almost 0."""
    return np.where(np.isfinite(factor), factor, _ZERO)


def _xnnpack(x, low, high):
    """Scale and zero point of rows, and their values; ties round to even."""
    steps = np.where(low == high, np.float32(1), _STEPS / (high - low))
    factor = _factor(steps)
    bottom, top = low * factor, high * factor
    zero = np.where((_LOW + bottom) + (_HIGH + top) > 0, _LOW - bottom, _HIGH - top)
    zero = np.rint(_known(zero).clip(_LOW, _HIGH))
    q = np.rint(_known(x * factor).clip(_LOW - zero, _HIGH - zero)) + zero
    return np.float32(1) / steps, zero, q


def _builtin(x, low, high):
    """Scale and zero point of rows, and their values; ties round away from 0."""
    scale = np.where(low == high, np.float32(1), (high - low) / _STEPS)
    bottom, top = low / scale, high / scale
    zero = np.where(-_LOW + abs(bottom) < _HIGH + abs(top), _LOW - bottom, _HIGH - top)
    zero = np.where(low == high, _ZERO, _away(_known(zero).clip(_LOW, _HIGH)))
    q = _away(_known(x * _factor(np.float32(1) / scale)))
    return scale, zero, (q + zero).clip(_LOW, _HIGH)


def _symmetric(x, low, high):
    """Scale of rows, zero points of 0, and their values; ties round away from 0."""
    reach = np.maximum(-low, high)
    scale = np.where(reach == 0, np.float32(1), reach / _HIGH)
    q = _away(_known(x * _factor(np.where(reach == 0, _ZERO, _HIGH / reach))))
    return scale, np.zeros_like(scale), q.clip(-_HIGH, _HIGH)


_RULES = {
    "xnnpack": _xnnpack, "builtin": _builtin, "symmetric": _symmetric, "asymmetric": _builtin,
}


def _known(values):
    """``values`` with 0 for NaN: rows with NaN or infinity get the scale NaN."""
    return np.where(np.isnan(values), _ZERO, values)


def _away(values):
    """``values`` rounded, ties away from 0."""
    return np.sign(values) * np.floor(abs(values.astype(np.float64)) + 0.5)


def _float_sums(inputs, attributes):
    """Sums of quantized rows as float32, ``clamp(sums * x_scale * w_scale + bias)``.

    ``columns`` : int64, sums over the columns of the weights; ``scale``, ``bias`` (or None) :
    float32 of the columns; ``rule`` as in `_quantize_rows`; ``low``, ``high`` : numbers; ``shape``
    of y.
    """
    y = float_sums(*inputs, attributes, attributes["bias"])
    return [y.clip(attributes["low"], attributes["high"]).reshape(attributes["shape"])]


_GROUP = 4  # channels that a depthwise convolution converts together


@np.errstate(all="ignore")  # infinity and NaN are results
def float_sums(sums, x_scale, zero, attributes, bias):
    """Return sums of rows as float32: ``columns``, ``scale`` and ``rule`` as of `_float_sums`."""
    sums = (sums - zero.astype(np.int64) * attributes["columns"]).astype(np.int32)
    sums, scale = sums.astype(np.float32), attributes["scale"]
    if attributes["rule"] == "xnnpack":  # the bias is added with one rounding
        y = (sums * x_scale).astype(np.float64) * scale
        y = (y if bias is None else y + bias).astype(np.float32)
    elif attributes["rule"] in ("symmetric", "asymmetric"):
        y = sums * (x_scale * scale)
        y = y if bias is None else y + bias
    else:
        count = sums.shape[-1]
        grouped = np.arange(count) < count // _GROUP * _GROUP
        y = np.where(grouped, sums * scale * x_scale, sums * x_scale * scale)
        y = y if bias is None else y + bias
    return y


KERNELS = {
    "litert.add": _add, "litert.mul": _mul, "litert.square": _square, "litert.sum": _sum,
    "litert.concatenation": _concatenation, "litert.leaky_relu": _leaky_relu,
    "litert.resize_bilinear": _resize_bilinear, "litert.softmax": _softmax,
    "litert.quantize": _quantize, "litert.logistic16": _of_int16(INT16.logistic),
    "litert.tanh16": _of_int16(INT16.tanh),
    "litert.float_sums": _float_sums, "litert.quantize_rows": _quantize_rows,
}
