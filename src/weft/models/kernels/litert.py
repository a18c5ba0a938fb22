"""LiteRT's arithmetic, with its default kernels, where TFLite Micro's differs.

Sources: XNNPACK, ``microparams-init.c``, ``qs8-vadd``, ``qs8-vmul``, ``reduce-nd.c``,
``indirection.c``, ``f32-qs8-vcvt``; LiteRT, ``optimized_ops.h`` (Softmax), ``activations.cc``.
"""

import math

import numpy as np

from weft.models.kernels.fixed_point import clamp, multiply
from weft.models.kernels.gemmlowp import INT16

__all__ = ["KERNELS", "scaled_total"]


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
        _neighbours(given, count, attributes)
        for given, count in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    fy, fx, wide = fy[:, None, None], fx[:, None], x.astype(np.int64)
    upper, lower = (
        (row[:, :, x0] << 11) + (row[:, :, x1] - row[:, :, x0]) * fx
        for row in (wide[:, y0], wide[:, y1])
    )
    y = ((upper << 11) + (lower - upper) * fy + (1 << 21)) >> 22
    return [y.astype(x.dtype)]


def _neighbours(given, count, attributes):
    """Lower and upper neighbour of each output along one axis, and the upper one's weight."""
    corners = attributes["align_corners"] and count > 1
    scale = np.float32(given - corners) / np.float32(count - corners)
    at = np.arange(count, dtype=np.float32) * scale
    if attributes["half_pixel_centers"] and not attributes["align_corners"]:
        half = np.float32(0.5)
        at = (at + (half * scale - half)).clip(0, given - 1)
    lower = at.astype(np.int64)
    weight = np.rint((at - lower.astype(np.float32)) * np.float32(2048)).astype(np.int64)
    return lower, (lower + 1).clip(None, given - 1), weight


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


KERNELS = {
    "litert.add": _add, "litert.mul": _mul, "litert.sum": _sum,
    "litert.concatenation": _concatenation, "litert.leaky_relu": _leaky_relu,
    "litert.resize_bilinear": _resize_bilinear, "litert.softmax": _softmax,
    "litert.quantize": _quantize, "litert.logistic16": _of_int16(INT16.logistic),
    "litert.tanh16": _of_int16(INT16.tanh),
}
