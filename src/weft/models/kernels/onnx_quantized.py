"""Kernels of ONNX operators on quantized tensors, exact with onnxruntime on x86-64."""

import numpy as np

__all__ = ["KERNELS"]

F32, F64 = np.float32, np.float64


def _saturated(values, dtype):
    """``values`` rounded to nearest, ties to even, and saturated; NaN is the lowest value.

    x86-64 converts NaN to the lowest integer, and onnxruntime then saturates it.
    """
    limits = np.iinfo(dtype)
    rounded = np.where(np.isnan(values), limits.min, np.rint(values))
    return np.clip(rounded, limits.min, limits.max).astype(dtype)


def _along(values, ndim, axis):
    """Scales or zero points, one or one for each slice along ``axis``, in a shape to broadcast."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * ndim
    shape[axis] = values.size
    return values.reshape(shape)


def _quantize(inputs, attributes):
    """``dtype`` : str; ``axis`` : int. ``saturate(rint(x / scale) + zero)``."""
    x, scale, *zero = inputs
    dtype, axis = np.dtype(attributes["dtype"]), attributes["axis"]
    zero = zero[0] if zero and zero[0] is not None else np.zeros(1, dtype)
    with np.errstate(all="ignore"):
        steps = np.rint(x / _along(scale, x.ndim, axis))
    return [_saturated(steps + _along(zero, x.ndim, axis).astype(F32), dtype)]


def _dequantize(inputs, attributes):
    """``axis`` : int. ``float32(x - zero) * scale``."""
    x, scale, *zero = inputs
    wide = x.astype(np.int64)
    if zero and zero[0] is not None:
        wide = wide - _along(zero[0], x.ndim, attributes["axis"]).astype(np.int64)
    return [wide.astype(F32) * _along(scale, x.ndim, attributes["axis"])]


def _dynamic_quantize(inputs, attributes):
    """x as uint8; scale and zero point come from its range, from the smallest to the largest value.

    The range always includes 0.
    """
    [x] = inputs
    low, high = np.minimum(x.min(), F32(0)), np.maximum(x.max(), F32(0))
    scale = F32(1) if high == low else (high - low) / F32(255)
    zero = _saturated(F32(0) - low / scale, np.uint8)
    y = _saturated(np.rint(x / scale) + F32(zero), np.uint8)
    return [y, np.asarray(scale, F32), np.asarray(zero)]


def _scale(inputs, attributes):
    """``float32(sums) * scale``. Inputs: sums, scale."""
    sums, scale = inputs
    return [sums.astype(F32) * scale]


def _subtract_zero(inputs, attributes):
    """``sums - zero * columns`` in int32. Inputs: sums, zero point of x,
    sums of the columns of the weights."""
    sums, zero, columns = inputs
    wide = sums.astype(np.int64) - int(zero.ravel()[0]) * columns.astype(np.int64)
    return [wide.astype(np.int32)]


def _add(inputs, attributes):
    """QLinearAdd: ``rint(fma(a, sa/sc, fma(b, sb/sc, zc - (sa/sc * za + sb/sc * zb))))``.

    Each fma rounds once, to float32; inputs: a, its scale and zero point, b, c likewise.

    Source: onnxruntime, ``MlasQLinearAdd`` for AVX2.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = _numbers(inputs, (0, 3))
    ratio_a, ratio_b = F64(a_scale / c_scale), F64(b_scale / c_scale)
    offset = F32(ratio_a * F64(a_zero) + F64(F32(ratio_b * F64(b_zero))))
    offset = F64(F32(c_zero) - offset)
    inner = (b.astype(F64) * ratio_b + offset).astype(F32)
    return [_saturated((a.astype(F64) * ratio_a + inner).astype(F32), a.dtype)]


def _multiply(inputs, attributes):
    """QLinearMul: ``rint((a - za) * (b - zb) * (sa * sb / sc) + zc)`` in float32."""
    a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = _numbers(inputs, (0, 3))
    product = (a.astype(F32) - F32(a_zero)) * (b.astype(F32) - F32(b_zero))
    return [_saturated(product * (a_scale * b_scale / c_scale) + F32(c_zero), a.dtype)]


def _global_average_pool(inputs, attributes):
    """QLinearGlobalAveragePool: ``rint(sum(x - zx) * (sx / (sy * size))) + zy``."""
    x, x_scale, x_zero, y_scale, y_zero = _numbers(inputs, (0,))
    axes = tuple(range(2, x.ndim))
    size = int(np.prod(x.shape[2:]))
    sums = x.sum(axis=axes, keepdims=True, dtype=np.int64) - int(x_zero) * size
    scale = x_scale / (y_scale * F32(size))
    return [_saturated(np.rint(sums.astype(F32) * scale) + F32(y_zero), x.dtype)]


def _concat(inputs, attributes):
    """QLinearConcat: ``axis`` : int.

    Inputs: scale and zero point of y; then each part, its scale and its zero point. A part is
    requantized if its scale or its zero point is not the one of y.
    """
    y_scale, y_zero = inputs[0].ravel()[0], inputs[1].ravel()[0]
    parts = []
    for place in range(2, len(inputs), 3):
        x, scale, zero = inputs[place], inputs[place + 1].ravel()[0], inputs[place + 2].ravel()[0]
        if scale != y_scale or zero != y_zero:
            values = (x.astype(F32) - F32(zero)) * scale
            x = _saturated(np.rint(values / y_scale) + F32(y_zero), x.dtype)
        parts.append(x)
    return [np.concatenate(parts, attributes["axis"])]


def _numbers(inputs, tensors):
    """Inputs with each scale and zero point as a number; an absent zero point is 0."""
    return [
        value if place in tensors else (F32(0) if value is None else value.ravel()[0])
        for place, value in enumerate(inputs)
    ]


KERNELS = {
    "onnx.quantize": _quantize, "onnx.dequantize": _dequantize,
    "onnx.dynamic_quantize": _dynamic_quantize, "onnx.scale": _scale,
    "onnx.subtract_zero": _subtract_zero, "onnx.qlinear_add": _add,
    "onnx.qlinear_multiply": _multiply,
    "onnx.qlinear_global_average_pool": _global_average_pool, "onnx.qlinear_concat": _concat,
}
