"""Dynamic range quantization: LiteRT quantizes rows of float32 while it runs.

A row is what shares a scale: a row of a matrix, a pixel, or a whole image. The sums of its product
are exact integers; then they become float32 again. The rules of LiteRT are names:

==============  ==================================================================================
``xnnpack``     of XNNPACK: most products
``builtin``     of its own kernels: depthwise convolutions
``asymmetric``  of its own kernels, rows by the range of their values: weights of uint8, layers with
                a state
``symmetric``   the same, rows by their largest value
==============  ==================================================================================

Sources: XNNPACK, ``quantization.h`` and the kernels ``qd8-f32-qc8w``; TensorFlow Lite,
``AsymmetricQuantizeFloats``, ``SymmetricQuantizeFloats``, ``depthwiseconv_uint8.h``, and
``MatrixBatchVectorMultiplyAccumulate``.
"""

import numpy as np

__all__ = ["KERNELS", "float_sums", "quantize_rows"]

_LOW, _HIGH, _ZERO, _STEPS = (np.float32(number) for number in (-128, 127, 0, 255))
_GROUP = 4  # channels that a depthwise convolution converts together


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


KERNELS = {"litert.float_sums": _float_sums, "litert.quantize_rows": _quantize_rows}
