"""Scales, zero points and limits of quantized tensors, checked, as TFLite derives them."""

import math

import numpy as np
import tflite

from weft.models.kernels.fixed_point import multiplier_of

__all__ = [
    "FUSED", "RANGES", "float_limits", "fused_limits", "half_away", "per_channel",
    "per_tensor", "multiplier_and_shift",
]

_F = tflite.ActivationFunctionType
FUSED = {
    _F.NONE: "none", _F.RELU: "relu", _F.RELU_N1_TO_1: "relu_n1_to_1", _F.RELU6: "relu6",
}
RANGES = {"relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1), "none": (None, None)}


def half_away(x: float) -> int:
    """``x`` rounded to an integer, ties away from zero, within -2**40..2**40 (``TfLiteRound``)."""
    x = min(max(x, -(2.0**40)), 2.0**40)
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def multiplier_and_shift(operator, ratio):
    """Multiplier and shift of a ratio of scales; raises the operator's error from 2**31 on."""
    if not abs(ratio) < 2.0**31:
        raise operator.error(f"the ratio of scales must be below 2**31, not {ratio}")
    return multiplier_of(ratio)


def per_tensor(operator, tensor):
    """Scale (float) and zero point (int) of a tensor that has one of each."""
    scale, zero = _checked(operator, tensor)
    if scale.size != 1:
        raise operator.error(f"tensor {tensor.name!r} must have one scale, not {scale.size}")
    return float(scale[0]), int(zero[0])


def per_channel(operator, tensor, axis):
    """Scales and zero points of weights: one, or one for each channel along ``axis``."""
    scale, zero = _checked(operator, tensor)
    if scale.size > 1:
        given, size = tensor.quantization.axis, tensor.shape[axis]
        # Of two axes with equal sizes, the runtimes take the one of the operator.
        if not 0 <= given < len(tensor.shape) or tensor.shape[given] != size:
            raise operator.error(
                f"scales of {tensor.name!r} must be along axis {axis}, not {given}"
            )
        if scale.size != size:
            raise operator.error(f"scales of {tensor.name!r} must be 1 or {size}, not {scale.size}")
    return scale, zero


def fused_limits(operator, fused, tensor):
    """Lowest and highest result of a fused activation.

    Source: TFLite, ``CalculateActivationRangeQuantized``.
    """
    limits = np.iinfo(tensor.dtype)
    low, high = RANGES[fused]
    if low is high is None:
        return limits.min, limits.max  # no runtime reads the scale
    scale, zero = per_tensor(operator, tensor)
    step = np.float32(scale)
    with np.errstate(over="ignore"):
        bottom = limits.min if low is None else zero + half_away(float(np.float32(low) / step))
        top = limits.max if high is None else zero + half_away(float(np.float32(high) / step))
    low, high = max(limits.min, bottom), min(limits.max, top)
    if low > high:
        raise operator.error(
            f"the lowest result of {fused} must not exceed the highest, not {low}..{high}"
        )
    return low, high


def float_limits(fused):
    """Lowest and highest result of a fused activation in float32.

    A side without a limit has the largest finite number.
    """
    limits = np.finfo(np.float32)
    low, high = RANGES[fused]
    return (
        float(limits.min) if low is None else float(low),
        float(limits.max) if high is None else float(high),
    )


def _checked(operator, tensor):
    quantization = tensor.quantization
    if quantization is None:
        raise operator.error(f"tensor {tensor.name!r} must have a scale")
    scale, zero = quantization.scale, quantization.zero
    if zero.shape != scale.shape:
        raise operator.error(
            f"zero points of {tensor.name!r} must be 1 or {scale.size}, not {zero.size}"
        )
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise operator.error(f"scales of {tensor.name!r} must be finite and above 0")
    if tensor.dtype.kind in "iu" and tensor.dtype.itemsize < 8:
        limits = np.iinfo(tensor.dtype)
        wrong = zero[(zero < limits.min) | (zero > limits.max)]
        if wrong.size:
            raise operator.error(
                f"zero points of {tensor.name!r} must be in {limits.min}..{limits.max}, "
                f"not {wrong[0]}"
            )
    return scale, zero
