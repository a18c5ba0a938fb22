"""What the lanes do with the results of a layer by their table: ADD of a map, or a lookup."""

import numpy as np

from weft.golden import scaled
from weft.models import kernels
from weft.models.ir import Host, Tensor
from weft.models.network_core.layers import Addition
from weft.models.network_core.refusal import Refusal

__all__ = ["addition", "lookup"]

_LEFT_SHIFT = 20


def addition(node: Host, own: int, tensors: tuple[Tensor, ...], mode: str) -> Addition:
    """Return the parameters of ADD whose input ``own`` (0 or 1) is the layer's result.

    Raises Refusal if the inputs are not two maps of 8 bits, or if a result is not exact: all pairs
    of bytes are compared with the node's kernel, ``tflite.add`` or ``litert.add``.
    """
    given, kinds = node.attributes, [tensors[number] for number in node.inputs]
    dtype = kinds[0].dtype
    if dtype not in (np.int8, np.uint8) or kinds[1].dtype != dtype or "multipliers" not in given:
        raise Refusal("its inputs must be of 8 bits")
    if kinds[0].shape != kinds[1].shape or any(kind.data is not None for kind in kinds):
        raise Refusal("its inputs must be two maps of equal shapes")
    half = 128 if dtype == np.uint8 else 0
    other = 1 - own
    values = np.arange(256).astype(np.int8).astype(np.int64)  # of the bytes
    steps = [(values + half - given["zeros"][n], n) for n in (other, own)]
    if node.kernel == "litert.add":
        terms = [value * given["multipliers"][n] for value, n in steps]
        multiplier, shift = 1 << 30, 1 - given["shift"]  # 2**-shift
    else:
        terms = [_scaled(value, given, n, mode) for value, n in steps]
        multiplier, shift = given["multiplier"], given["shift"]
    found = Addition(
        np.stack(terms).astype(np.int32), multiplier, shift, given["zero"] - half,
        given["low"] - half, given["high"] - half,
    )
    x, y = np.broadcast_arrays(values[:, None], values[None, :])
    inputs = [(v + half).astype(dtype) for v in (x, y)]
    [expected] = kernels.run(node.kernel, inputs if other == 0 else inputs[::-1], given)
    if not np.array_equal(_added(found, x, y, mode) + half, expected):
        raise Refusal(f"its results are not exact in mode {mode}")
    return found


def lookup(results: np.ndarray) -> Addition:
    """Return the parameters of a table: ADD with the scale 1 of a map whose values count as 0.

    Parameters
    ----------
    results : integers [256]
        Of int8, for the values -128 .. 127 of the layer.
    """
    table = np.zeros((2, 256), np.int32)
    table[1] = np.roll(results, 128)  # by the bytes of the values
    return Addition(table, 1 << 30, 1, 0, -128, 127)  # 2**30 * 2**(1 - 31) = 1


def _scaled(values, given, number, mode):
    """Return the terms of input ``number`` of the kernel ``tflite.add``."""
    if given["left_shift"] != _LEFT_SHIFT:
        raise Refusal(f"its left_shift must be {_LEFT_SHIFT}, not {given['left_shift']}")
    return scaled(
        (values << _LEFT_SHIFT).astype(np.int32), given["multipliers"][number],
        given["shifts"][number], mode=mode,
    )


def _added(addition: Addition, x, y, mode: str) -> np.ndarray:
    """Return the sums of added bytes x and results y, by the table."""
    total = addition.table[0, x & 255] + addition.table[1, y & 255]
    z = scaled(total, addition.multiplier, addition.shift, mode=mode).astype(np.int64)
    return np.clip(z + addition.zero, addition.low, addition.high)
