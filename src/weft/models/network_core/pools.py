"""Pools, means and conversions as layers with equal weights, if all their results are exact."""

import functools
import math

import numpy as np

from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Host, Window
from weft.models.kernels.fixed_point import multiply
from weft.models.kernels.litert import scaled_total
from weft.models.network_core.layers import Refusal

__all__ = [
    "MAX_COUNT", "NO_PADDING", "EqualWeights", "average_scale", "conversion_scale", "mean_scale",
    "pool_window",
]

NO_PADDING = (0, 0, 0, 0)
MAX_COUNT = 1 << 16  # inputs of a mean: their sum with weight 64 fits int32
_WEIGHTS = 64, *range(1, 64), *range(65, 128)


class EqualWeights:
    """The weight of all inputs, and the scale of their sum.

    Attributes
    ----------
    weight, multiplier, shift : int
    """

    def __init__(self, weight: int, multiplier: int, shift: int):
        self.weight = weight
        self.multiplier = multiplier
        self.shift = shift


def pool_window(node: Host, size: tuple[int, int]) -> Window:
    """Return the window of a pool of a map of ``size``; Refusal if it reads beyond the map."""
    given = node.attributes
    kernel, output = tuple(given["kernel_size"]), tuple(given["output"])
    # With one output along an axis, any stride gives the same result.
    stride = tuple(s if n > 1 else 1 for s, n in zip(given["stride"], output, strict=True))
    reach = tuple(
        (n - 1) * s + k for n, s, k in zip(output, stride, kernel, strict=True)
    )
    if any(given["padding"]) or reach[0] > size[0] or reach[1] > size[1]:
        raise Refusal("its windows have padding, so they have different numbers of inputs")
    return Window(kernel, stride, (1, 1), NO_PADDING, size, output)


@functools.lru_cache(maxsize=256)
def average_scale(count: int, mode: str, zero: int) -> EqualWeights:
    """Return a weight and a scale with which averages of ``count`` inputs are exact.

    The results for all sums are compared with the kernel ``tflite.average_pool``, whose ties are
    rounded away from ``zero``. Raises Refusal if no weight in 1..127 is exact.
    """
    if count > MAX_COUNT:
        raise Refusal(f"its windows must have at most {MAX_COUNT} inputs, not {count}")
    sums = _sums(count, zero)
    expected = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    found = _exact(1 / count, sums, expected, mode)
    if found is None:
        raise Refusal(f"averages of {count} inputs are not exact with the scaler of the lanes")
    return found


def mean_scale(node: Host, shape: tuple[int, ...], half: int, mode: str) -> EqualWeights:
    """Return a weight and a scale for a mean over the pixels of a map of ``shape``.

    They are the ones of the kernel ``tflite.mean``; the results for all sums are compared with the
    kernel ``litert.sum``. ``half`` is subtracted from all values, which then are int8. Raises
    Refusal if the axes are others, or no weight in 1..127 is exact.
    """
    given = node.attributes
    if len(shape) != 4 or tuple(sorted(axis % 4 for axis in given["axes"])) != (1, 2):
        raise Refusal("its axes must be height and width")
    count = math.prod(shape[1:3])
    if count > MAX_COUNT:
        raise Refusal(f"its map must have at most {MAX_COUNT} pixels, not {count}")
    zeros = tuple(zero - half for zero in given["zeros"])
    if node.kernel == "litert.sum":
        totals = np.arange(-128 * count, 127 * count + 1)
        results = scaled_total(totals + half * count, count, given).astype(np.int64)
        expected = np.clip(results - half, -128, 127) - zeros[1]
        return _found(given["scale"], totals - zeros[0] * count, expected, mode, count)
    places = min(count.bit_length() - 1, 32, 31 + given["shift"])
    multiplier = (given["multiplier"] << places) // count
    shift = given["shift"] - places
    return _as_the_kernel(multiplier, shift, count, zeros, mode)


def conversion_scale(
    table: np.ndarray, ratio: float, zeros: tuple[int, int], mode: str
) -> tuple[EqualWeights, int, int] | None:
    """Return a weight, a scale and the limits of a table that scales its input and clamps it.

    Parameters
    ----------
    table : int8 [256]
        The results for the inputs -128 .. 127.
    ratio : float
        Scale of the input, divided by the scale of the result.
    zeros : (int, int)
        Zero points of input and result.

    It is None if the table is another function, or if the scaler of the lanes rounds a result in
    another way.
    """
    expected = table.astype(np.int64) - zeros[1]
    found = _exact(ratio, _sums(1, zeros[0]), expected, mode)
    return None if found is None else (found, int(table.min()), int(table.max()))


def _as_the_kernel(multiplier, shift, count, zeros, mode):
    """Return the weight and the scale whose results equal the ones of fixed-point arithmetic."""
    if mode == "tflite" and -31 <= shift <= 31:
        return EqualWeights(1, multiplier, shift)  # the kernel computes with these
    sums = _sums(count, zeros[0])
    expected = np.clip(multiply(sums, multiplier, shift), -128 - zeros[1], 127 - zeros[1])
    return _found(multiplier * 2.0 ** (shift - 31), sums, expected, mode, count)


def _found(scale, sums, expected, mode, count):
    """Return the weight and the scale whose results are the expected ones; Refusal without."""
    found = _exact(scale, sums, expected, mode)
    if found is None:
        raise Refusal(f"sums of {count} inputs are not exact with the scaler of the lanes")
    return found


def _sums(count, zero):
    """Return all sums of ``count`` values of int8 minus ``zero``."""
    return np.arange(-128 * count, 127 * count + 1) - zero * count


def _exact(scale, sums, expected, mode):
    """Return the first weight whose scaled sums equal the expected ones, or None.

    Results beyond the least and the largest expected ones are clamped by the lanes.
    """
    for weight in _WEIGHTS:
        if weight * np.abs(sums).max() >= 1 << 31 or not 2.0**-32 < scale / weight < 2.0**31:
            continue
        multiplier, shift = lane_parameters(scale / weight, mode)
        found = lane_results((weight * sums).astype(np.int32), multiplier, shift, mode)
        if np.array_equal(np.clip(found, expected.min(), expected.max()), expected):
            return EqualWeights(weight, multiplier, shift)
    return None
