"""ADD, SUB and MUL in the layer before them, and tables of 256 results, by the ADD table."""

import numpy as np

from weft.golden import scaled
from weft.models import kernels
from weft.models.arithmetic import lane_parameters
from weft.models.ir import Host, Tensor
from weft.models.network_core.layers import Addition, Refusal
from weft.models.network_core.products import half_of
from weft.quantize import quantize_multiplier

__all__ = ["addition", "lookup", "multiplication"]


_LEFT_SHIFT = 20


def addition(node: Host, own: int, tensors: tuple[Tensor, ...], mode: str) -> Addition:
    """Return the parameters of ADD whose input ``own`` (0 or 1) is the layer's result.

    Raises Refusal if the inputs are not of 8 bits, or if a result is not exact: all pairs of bytes
    are compared with the node's kernel, ``tflite.add``, ``tflite.sub`` or ``litert.add``.
    """
    attributes, kinds = node.attributes, [tensors[number] for number in node.inputs]
    dtype = kinds[0].dtype
    quantized = dtype in (np.int8, np.uint8) and "multipliers" in attributes
    if not quantized or kinds[1].dtype != dtype:
        raise Refusal("its inputs must be of 8 bits")
    half = 128 if dtype == np.uint8 else 0
    other = 1 - own
    values = np.arange(256).astype(np.int8).astype(np.int64)  # of the bytes
    steps = [(values + half - attributes["zeros"][n], n) for n in (other, own)]
    if node.kernel == "litert.add":
        terms = [value * attributes["multipliers"][n] for value, n in steps]
        multiplier, shift = 1 << 30, 1 - attributes["shift"]  # 2**-shift
    else:
        terms = [_scaled(value, node, n, mode) for value, n in steps]
        multiplier, shift = attributes["multiplier"], attributes["shift"]
    parameters = Addition(
        np.stack(terms).astype(np.int32), multiplier, shift, attributes["zero"] - half,
        attributes["low"] - half, attributes["high"] - half,
    )
    if not _is_exact(parameters, node, own, dtype, mode):
        raise Refusal(f"its results are not exact in mode {mode}")
    return parameters


# What is added to the multiplier of MUL until all products are exact: LiteRT rounds a product to 24
# bits before it rounds it to an integer.
_NUDGES = 0, *(sign << bit for bit in range(8) for sign in (1, -1))


def multiplication(node: Host, own: int, tensors: tuple[Tensor, ...], mode: str) -> Addition:
    """Return the parameters of MUL whose input ``own`` (0 or 1) is the layer's result.

    Raises Refusal as `addition`, for the kernels ``tflite.mul`` and ``litert.mul``.
    """
    attributes, kinds = node.attributes, [tensors[number] for number in node.inputs]
    dtype = kinds[0].dtype
    if dtype not in (np.int8, np.uint8) or kinds[1].dtype != dtype:
        raise Refusal("its inputs must be of 8 bits")
    half = half_of(dtype)
    values = np.arange(256).astype(np.int8).astype(np.int64)  # of the bytes
    factors = [values + half - attributes["zeros"][n] for n in (1 - own, own)]
    if node.kernel == "litert.mul":
        first, shift = map(int, quantize_multiplier(attributes["scale"]))
        multipliers = [first + nudge for nudge in _NUDGES if (first + nudge) >> 30 == 1]
    else:
        multipliers, shift = [attributes["multiplier"]], attributes["shift"]
    for multiplier in multipliers:
        parameters = Addition(
            np.stack(factors).astype(np.int32), multiplier, shift,
            attributes["zero"] - half, attributes["low"] - half, attributes["high"] - half,
            multiply=True,
        )
        if _is_exact(parameters, node, own, dtype, mode):
            return parameters
    raise Refusal(f"its results are not exact in mode {mode}")


def _is_exact(parameters, node, own, dtype, mode) -> bool:
    """Return whether the results of all pairs of bytes are those of the node's kernel."""
    values, half = np.arange(256).astype(np.int8).astype(np.int64), half_of(dtype)
    x, y = np.broadcast_arrays(values[:, None], values[None, :])
    inputs = [(v + half).astype(dtype) for v in (x, y)]
    [expected] = kernels.run(node.kernel, inputs if own == 1 else inputs[::-1], node.attributes)
    return np.array_equal(_added(parameters, x, y, mode) + half, expected)


def lookup(results: np.ndarray, mode: str) -> Addition:
    """Return the parameters of a table: ADD with the scale 1 of a map whose values count as 0.

    Parameters
    ----------
    results : integers [256]
        Of int8, for the values -128 .. 127 of the layer.
    mode : str
    """
    table = np.zeros((2, 256), np.int32)
    table[1] = np.roll(results, 128)  # by the bytes of the values
    return Addition(table, *lane_parameters(1.0, mode), 0, -128, 127)


def _scaled(values, node, number, mode):
    """Return the terms of input ``number`` of ``tflite.add``; the second one of SUB is negative."""
    given = node.attributes
    if given["left_shift"] != _LEFT_SHIFT:
        raise Refusal(f"its left_shift must be {_LEFT_SHIFT}, not {given['left_shift']}")
    terms = scaled(
        (values << _LEFT_SHIFT).astype(np.int32), given["multipliers"][number],
        given["shifts"][number], mode=mode,
    )
    return -terms if node.kernel == "tflite.sub" and number == 1 else terms


def _added(addition: Addition, x, y, mode: str) -> np.ndarray:
    """Return the sums or products of added bytes x and results y, by the table."""
    terms = addition.table[0, x & 255], addition.table[1, y & 255]
    total = terms[0] * terms[1] if addition.multiply else terms[0] + terms[1]
    z = scaled(total, addition.multiplier, addition.shift, mode=mode).astype(np.int64)
    return np.clip(z + addition.zero, addition.low, addition.high)
