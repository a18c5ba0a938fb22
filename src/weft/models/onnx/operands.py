"""Operands and results of products: arrays or tensors, with scales and zero points."""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "QuantizedOperand", "QuantizedResult", "from_dequantize", "from_names", "limits_of",
    "quantize_bias", "result_of",
]

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True, eq=False)
class QuantizedOperand:
    """An operand of a product.

    Attributes
    ----------
    name : str
        Its tensor.
    dtype : numpy.dtype
    data : array or None
        Value of a constant.
    scale : float32 [1] or [slices], or None
        None: the numbers are used as they are.
    zero : int64 [1] or [slices]
    axis : int
        Axis of the slices.
    places : tuple of int
        Places in the file of the nodes that it stands for.
    """

    name: str
    dtype: np.dtype
    data: np.ndarray | None = None
    scale: np.ndarray | None = None
    zero: np.ndarray = None
    axis: int = 0
    places: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class QuantizedResult:
    """A quantized result: its tensor, scale, zero point and limits, and the nodes it stands for."""

    name: str
    dtype: np.dtype
    scale: float
    zero: int
    low: int
    high: int
    places: tuple[int, ...] = ()


def from_names(source, name, scale="", zero="", *, axis=0) -> QuantizedOperand | None:
    """The operand of three inputs of a node; None if scale or zero point are not constants."""
    dtype = source.types[name][0]
    scales, zeros = None, np.zeros(1, np.int64)
    if scale:
        scales = source.constant(scale)
        if scales is None or scales.dtype != np.float32 or not _positive(scales):
            return None
        scales = scales.ravel()
    if zero:
        zeros = source.constant(zero)
        if zeros is None or zeros.dtype != dtype or zeros.ndim > 1:
            return None
        zeros = zeros.astype(np.int64).ravel()
    data, dtype = _bytes(source.constant(name), dtype)
    if dtype not in BYTES:
        return None
    return QuantizedOperand(name, dtype, data, scales, zeros, axis)


def from_dequantize(source, name) -> QuantizedOperand | None:
    """The 8-bit operand that a DequantizeLinear before ``name`` reads, or None.

    A constant may be transposed in between.
    """
    operator = source.producer.get(name)
    if operator is None:
        return None
    if operator.kind == "Transpose" and operator.domain in ("", "ai.onnx"):
        inner = from_dequantize(source, operator.inputs[0])
        if inner is None or inner.data is None:
            return None
        axes = operator.attributes.get("perm", tuple(range(inner.data.ndim))[::-1])
        return QuantizedOperand(
            name, inner.dtype, inner.data.transpose(axes), inner.scale, inner.zero,
            axes.index(inner.axis), (*inner.places, operator.index),
        )
    if operator.kind != "DequantizeLinear" or operator.attributes.get("block_size", 0):
        return None
    rank = len(source.types[operator.inputs[0]][1])
    axis = operator.attributes.get("axis", 1)
    operand = from_names(source, *operator.inputs[:3], axis=axis % rank if rank else 0)
    if operand is None or operand.scale is None:
        return None
    scale = source.constant(operator.inputs[1])
    if scale.ndim > 1 or scale.size not in (1, *_size_of(source, operator.inputs[0], axis)):
        return None
    return QuantizedOperand(
        operand.name, operand.dtype, operand.data, operand.scale, operand.zero, operand.axis,
        (operator.index,),
    )


def result_of(source, name) -> QuantizedResult | None:
    """The quantized result that a tensor becomes: by QuantizeLinear, after a ReLU or a Clip.

    None if another operator reads one of the tensors in between, or the numbers are not constants.
    """
    bounds, places = [], []
    while True:
        operator = source.only_user(name)
        if operator is None:
            return None
        if operator.kind == "QuantizeLinear":
            break
        limits = limits_of(source, operator)
        if limits is None:
            return None
        bounds.append(limits)
        places.append(operator.index)
        name = operator.outputs[0]
    scale = source.constant(operator.inputs[1])
    dtype = source.types[operator.outputs[0]][0]
    zero = np.zeros((), dtype)
    if len(operator.inputs) > 2 and operator.inputs[2]:
        zero = source.constant(operator.inputs[2])
    fits = dtype in BYTES and scale is not None and zero is not None
    if not fits or scale.size != 1 or zero.size != 1 or not _positive(scale):
        return None
    if scale.dtype != np.float32:
        return None
    scale, zero = scale.ravel()[0], int(zero.ravel()[0])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for least, most in bounds:
        low = max(low, _quantized(least, scale, zero, dtype))
        high = min(high, _quantized(most, scale, zero, dtype))
    if low > high:
        return None
    return QuantizedResult(
        operator.outputs[0], dtype, float(scale), zero, low, high, (*places, operator.index)
    )


def quantize_bias(values, scale) -> np.ndarray | None:
    """``round(values / scale)`` as int64; None if one does not fit into int32."""
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(values, np.float64) / np.asarray(scale, np.float64))
    if not np.all(np.abs(steps) < 1 << 31):
        return None
    return steps.astype(np.int64)


def limits_of(source, operator):
    """Least and largest result of a ReLU, a Clip, or a Max or Min with a number; or None."""
    if operator.domain not in ("", "ai.onnx"):
        return None
    if operator.kind == "Relu":
        return 0.0, np.inf
    if operator.kind in ("Max", "Min"):
        values = [source.constant(name) for name in operator.inputs]
        numbers = [value for value in values if value is not None and value.size == 1]
        shapes = {source.types[name][1] for name, v in zip(operator.inputs, values, strict=True)
                  if v is None}
        if len(values) != 2 or len(numbers) != 1 or np.isnan(numbers[0]).any() or (
            shapes != {source.types[operator.outputs[0]][1]}
        ):
            return None
        number = float(numbers[0].ravel()[0])
        return (number, np.inf) if operator.kind == "Max" else (-np.inf, number)
    if operator.kind != "Clip":
        return None
    limits = [-np.inf, np.inf]
    for place, name in enumerate(operator.inputs[1:3]):
        if name:
            value = source.constant(name)
            if value is None or value.size != 1 or np.isnan(value).any():
                return None
            limits[place] = float(value.ravel()[0])
    return tuple(limits)


def _quantized(value, scale, zero, dtype):
    """One limit as a quantized number, rounded and saturated like any result."""
    with np.errstate(over="ignore"):
        steps = np.rint(np.float32(value) / scale)
    return int(np.clip(steps + zero, np.iinfo(dtype).min, np.iinfo(dtype).max))


def _positive(scales):
    return bool(np.all(np.isfinite(scales)) and np.all(scales > 0))


def _bytes(data, dtype):
    """4-bit constants as 8-bit ones."""
    wide = {"int4": np.int8, "uint4": np.uint8}.get(dtype.name)
    if wide is None or data is None:
        return data, dtype
    return data.astype(wide), np.dtype(wide)


def _size_of(source, name, axis):
    shape = source.types[name][1]
    return (shape[axis],) if -len(shape) <= axis < len(shape) else ()
