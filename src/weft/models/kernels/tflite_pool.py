"""TFLite's pools and reductions, and resizing of maps.

Sources: TFLite Micro, ``integer_ops/pooling.h``, ``reference/reduce.h``,
``reference/resize_bilinear.h``, ``reference/resize_nearest_neighbor.h``.
"""

import math

import numpy as np

from weft.models.kernels.fixed_point import clamp, multiply

__all__ = ["KERNELS", "MAX_WINDOW"]

MAX_WINDOW = 256  # rows or columns of a pool


def _quotient(a, b):
    """``a / b`` truncated, as C divides."""
    return np.sign(a) * (np.abs(a) // b)


def _taps(x, attributes):
    """For each element of the window, the inputs of all outputs, and where they are inside."""
    (kh, kw), (sh, sw), (top, left) = (
        attributes["kernel_size"], attributes["stride"], attributes["padding"],
    )
    if max(kh, kw) > MAX_WINDOW:
        raise ValueError(f"a pool must have at most {MAX_WINDOW} rows and columns, not {kh}, {kw}")
    oh, ow = attributes["output"]
    for ky in range(kh):
        for kx in range(kw):
            y = np.arange(oh) * sh + ky - top
            z = np.arange(ow) * sw + kx - left
            inside = ((y >= 0) & (y < x.shape[1]))[:, None] & ((z >= 0) & (z < x.shape[2]))
            y, z = y.clip(0, x.shape[1] - 1), z.clip(0, x.shape[2] - 1)
            yield x[:, y[:, None], z], inside[None, :, :, None]


def _average_pool(inputs, attributes):
    """``kernel_size``, ``stride``, ``padding`` (top, left), ``output`` : pairs.

    ``low``, ``high`` : limits of y.
    """
    [x] = inputs
    kind = np.float32 if x.dtype == np.float32 else np.int64
    total, count = kind(0), 0
    for tap, inside in _taps(x, attributes):
        total = total + np.where(inside, tap.astype(kind), kind(0))
        count = count + inside.astype(np.int64)
    if not np.all(count):
        raise ValueError("each window of a pool must have an input")
    if kind == np.int64:
        y = _quotient(total + np.where(total > 0, count // 2, -(count // 2)), count)
    else:
        y = total / count.astype(np.float32)
    return [clamp(y, attributes["low"], attributes["high"], x.dtype)]


def _max_pool(inputs, attributes):
    """As the average."""
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
    places = min(count.bit_length() - 1, 32, 31 + attributes["shift"])
    multiplier = int(_quotient(np.int64(attributes["multiplier"] << places), count))
    return _scaled_sum(x, count, multiplier, attributes["shift"] - places, attributes)


def _sum(inputs, attributes):
    """As the mean, without the division."""
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
    places = []
    for given, count in zip(x.shape[1:3], attributes["size"], strict=True):
        corners = attributes["align_corners"] and count > 1
        scale = np.float32(given - corners) / np.float32(count - corners)
        at = (np.arange(count, dtype=np.float32) + half) * scale
        at = _half_away(at) if attributes["align_corners"] else np.floor(at)
        places.append(at.astype(np.int64).clip(0, given - 1))
    return [x[:, places[0][:, None], places[1]]]


def _resize_bilinear(inputs, attributes):
    """As the nearest, of 8-bit values, with positions of 10 bits."""
    [x] = inputs
    (y0, y1, fy), (x0, x1, fx) = (
        _neighbours(given, count, attributes)
        for given, count in zip(x.shape[1:3], attributes["size"], strict=True)
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


def _neighbours(given, count, attributes):
    """Lower and upper neighbour of each output along one axis, and its position in 10 bits."""
    scale = ((given << 10) + count // 2) // count
    if attributes["align_corners"] and count > 1:
        scale = (((given - 1) << 10) + (count - 1) // 2) // (count - 1)
    at = np.arange(count) * scale
    if attributes["half_pixel_centers"]:
        at = at + scale // 2 - 512
    return _quotient(at, 1024).clip(0), _quotient(at + 1023, 1024).clip(None, given - 1), at


KERNELS = {
    "tflite.average_pool": _average_pool, "tflite.max_pool": _max_pool, "tflite.mean": _mean,
    "tflite.sum": _sum, "tflite.resize_nearest": _resize_nearest,
    "tflite.resize_bilinear": _resize_bilinear,
}
