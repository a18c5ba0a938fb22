"""Inputs and outputs of a program as arrays: batches, names, and float values."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from weft.models.ir import Tensor
from weft.visible import visible

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork

__all__ = ["dequantized", "quantized", "read_inputs"]


def read_inputs(program: "CompiledNetwork", x) -> tuple[dict[int, np.ndarray], int, bool]:
    """Return the inputs by tensor, [inferences, ...]; their number; whether floats were quantized.

    ``x`` is as for `weft.models.session.Session`. Raises TypeError or ValueError if it does not
    fit the network.
    """
    names = [program.tensors[number].name for number in program.inputs]
    if isinstance(x, Mapping):
        found = {visible(name): value for name, value in x.items()}  # or as the file has it
        if sorted(map(visible, x)) != sorted(names):
            raise ValueError(f"inputs must be {', '.join(names)}, not {', '.join(map(visible, x))}")
        given = [found[name] for name in names]
    else:
        given = list(x) if isinstance(x, list | tuple) else [x]
    if len(given) != len(names):
        raise ValueError(f"inputs must be {len(names)} ({', '.join(names)}), not {len(given)}")
    values, counts, is_float = {}, set(), False
    for number, array in zip(program.inputs, given, strict=True):
        tensor = program.tensors[number]
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"input {tensor.name} must be an array without a mask: fill it first")
        array = np.asarray(array)
        if array.dtype.kind == "f" and tensor.dtype.kind in "iu" and tensor.quantization:
            array, is_float = quantized(array, tensor, program.source), True
        elif array.dtype == np.float64 and tensor.dtype == np.float32:
            array = array.astype(np.float32)
        if array.dtype != tensor.dtype:
            raise TypeError(f"input {tensor.name} must be {tensor.dtype}, not {array.dtype}")
        count = _inferences(array, tensor)
        counts.add(count)
        values[number] = array.reshape(count, *tensor.shape)
    if len(counts) > 1:
        raise ValueError(f"inputs must have equal batches, not {sorted(counts)}")
    return values, counts.pop() if counts else 1, is_float


def _inferences(array, tensor):
    """Return the number of inferences in the input ``array``."""
    if array.shape == tensor.shape:
        return 1
    batch = tensor.shape[:1] == (1,) and array.shape[1:] == tensor.shape[1:]
    if not batch or not array.ndim or not len(array):
        raise ValueError(
            f"input {tensor.name} must be of shape {tensor.shape}, not {array.shape}"
        )
    return len(array)


def quantized(x: np.ndarray, tensor: Tensor, source: str) -> np.ndarray:
    """Return float values as a quantized tensor: ``round(x / scale) + zero``, saturated.

    ``source`` decides how ties are rounded: away from zero in TFLite, to even in ONNX. Raises
    ValueError for NaN.
    """
    if np.isnan(x).any():
        raise ValueError(f"input {tensor.name} must not have NaN: its type is {tensor.dtype}")
    scale, zero = _parameters(tensor)
    limits = np.iinfo(tensor.dtype)
    with np.errstate(over="ignore"):
        steps = np.clip(x.astype(np.float32) / scale, limits.min - zero, limits.max - zero)
    if source == "onnx":
        rounded = np.rint(steps)
    else:
        whole = np.trunc(steps)
        rounded = whole + np.where(np.abs(steps - whole) >= 0.5, np.sign(steps), 0)
    return (rounded + zero).astype(tensor.dtype)


def dequantized(value: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Return ``scale * (value - zero)`` in float32; the value itself if it is not quantized."""
    if tensor.quantization is None or tensor.dtype.kind not in "iu":
        return value
    scale, zero = _parameters(tensor)
    return (scale * (value.astype(np.float32) - zero)).astype(np.float32)


def _parameters(tensor):
    """Return scale and zero point in shapes that broadcast with the tensor."""
    given = tensor.quantization
    scale, zero = given.scale.astype(np.float32), given.zero
    if len(scale) == 1:
        return scale[0], zero[0]
    shape = [1] * len(tensor.shape)
    shape[given.axis] = -1
    return scale.reshape(shape), zero.reshape(shape)
