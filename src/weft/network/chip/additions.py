"""ADD of two maps with the scaler of the lanes, if all its results are exact."""

import numpy as np

from weft.golden import scaled
from weft.network import kernels
from weft.network.chip.layers import Addition
from weft.network.chip.refusal import Refusal
from weft.network.ir import Host, Tensor

__all__ = ["addition", "added"]

_LEFT_SHIFT = 20


def addition(node: Host, own: int, tensors: tuple[Tensor, ...], mode: str) -> Addition:
    """Return the parameters of ADD whose input ``own`` (0 or 1) is the layer's result.

    Raises Refusal if the inputs are not two maps of 8 bits, or if a result is not exact: all pairs
    of bytes are compared with the kernel ``tflite.add``.
    """
    given, kinds = node.attributes, [tensors[number] for number in node.inputs]
    dtype = kinds[0].dtype
    if dtype not in (np.int8, np.uint8) or kinds[1].dtype != dtype or "multipliers" not in given:
        raise Refusal("its inputs must be of 8 bits")
    if kinds[0].shape != kinds[1].shape or any(kind.data is not None for kind in kinds):
        raise Refusal("its inputs must be two maps of equal shapes")
    if given["left_shift"] != _LEFT_SHIFT:
        raise Refusal(f"its left_shift must be {_LEFT_SHIFT}, not {given['left_shift']}")
    half = 128 if dtype == np.uint8 else 0
    other = 1 - own
    scales = Addition(
        (given["multipliers"][other], given["multipliers"][own], given["multiplier"]),
        (given["shifts"][other], given["shifts"][own], given["shift"]),
        given["zeros"][other] - half, given["zero"] - half, given["low"] - half,
        given["high"] - half,
    )
    values = np.arange(-128, 128)
    x, y = values[:, None], values[None, :]
    inputs = [np.broadcast_to(v + half, (256, 256)).astype(dtype) for v in (x, y)]
    ordered = inputs if other == 0 else inputs[::-1]
    [expected] = kernels.run(node.kernel, ordered, given)
    found = added(x, y, given["zeros"][own] - half, scales, mode)
    if not np.array_equal(found + half, expected):
        raise Refusal(f"its results are not exact in mode {mode}")
    return scales


def added(x, y, y_zero: int, scales: Addition, mode: str) -> np.ndarray:
    """Return the sum of an added map x and a result y; ``y_zero`` is the zero point of y."""
    terms = [
        scaled(((value.astype(np.int64) - zero) << _LEFT_SHIFT).astype(np.int32), multiplier,
               shift, mode=mode).astype(np.int64)
        for value, zero, multiplier, shift in zip(
            (x, y), (scales.add_zero, y_zero), scales.multipliers, scales.shifts, strict=False
        )
    ]
    total = (terms[0] + terms[1]).astype(np.int32)
    z = scaled(total, scales.multipliers[2], scales.shifts[2], mode=mode).astype(np.int64)
    return np.clip(z + scales.zero, scales.low, scales.high)
