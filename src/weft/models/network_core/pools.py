"""Pools, means and conversions as layers with equal weights, if all their results are exact."""

import functools
import math

import numpy as np

from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Host
from weft.models.kernels.fixed_point import multiply
from weft.models.kernels.litert import scaled_total
from weft.models.network_core.layers import Refusal

__all__ = [
    "MAX_COUNT", "NO_PADDING", "EqualWeights", "average_scale", "conversion_scale",
    "fitted_scale", "mean_scale",
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


@functools.lru_cache(maxsize=256)
def average_scale(count: int, mode: str, zero: int, bits: int = 8) -> EqualWeights:
    """Return a weight and a scale with which averages of ``count`` inputs are exact.

    The results at both ends of all runs of sums with equal results are compared with the kernel
    ``tflite.average_pool``, whose ties are rounded away from ``zero``. Inputs have ``bits``, with
    sign. Raises Refusal if no weight in 1..127 is exact.
    """
    if count > MAX_COUNT:
        raise Refusal(f"its windows must have at most {MAX_COUNT} inputs, not {count}")
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    low, high = (value * count - zero * count for value in (least, most))
    steps = np.arange((1 << bits) + 1) * count - count // 2  # where a result begins, from 0 on
    ends = np.concatenate([[low, high], steps, steps - 1, -steps, 1 - steps])
    sums = np.unique(ends[(low <= ends) & (ends <= high)])
    expected = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    found = _exact(1 / count, sums, expected, (least - zero, most - zero), mode)
    if found is None:
        raise Refusal(f"averages of {count} inputs are not exact with the scaler of the lanes")
    return found


def mean_scale(node: Host, shape: tuple[int, ...], half: int, mode: str) -> EqualWeights:
    """Return a weight and a scale for a mean or a sum over axes of a tensor of ``shape``.

    They are the ones of the kernels ``tflite.mean`` and ``tflite.sum``; the results for all sums
    are compared with the kernel ``litert.sum``. ``half`` is subtracted from all values, which then
    are int8. Raises Refusal if no weight in 1..127 is exact.
    """
    given = node.attributes
    count = math.prod(shape[axis] for axis in given["axes"])
    if count > MAX_COUNT:
        raise Refusal(f"its results must be of at most {MAX_COUNT} values, not {count}")
    zeros = tuple(zero - half for zero in given["zeros"])
    if node.kernel == "litert.sum":
        totals = np.arange(-128 * count, 127 * count + 1)
        results = scaled_total(totals + half * count, count, given).astype(np.int64)
        expected = np.clip(results - half, -128, 127) - zeros[1]
        return _found(given["scale"], totals - zeros[0] * count, expected, zeros[1], mode)
    if node.kernel == "tflite.sum":
        return _as_the_kernel(given["multiplier"], given["shift"], count, zeros, mode)
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
    found = _exact(ratio, _sums(1, zeros[0]), expected, (expected.min(), expected.max()), mode)
    return None if found is None else (found, int(table.min()), int(table.max()))


def _as_the_kernel(multiplier, shift, count, zeros, mode):
    """Return the weight and the scale whose results equal the ones of fixed-point arithmetic."""
    if mode == "tflite" and -31 <= shift <= 31:
        return EqualWeights(1, multiplier, shift)  # the kernel computes with these
    sums = _sums(count, zeros[0])
    expected = np.clip(multiply(sums, multiplier, shift), -128 - zeros[1], 127 - zeros[1])
    return _found(multiplier * 2.0 ** (shift - 31), sums, expected, zeros[1], mode)


def _found(scale, sums, expected, zero, mode):
    """Return the weight and the scale whose results are the expected ones; Refusal without."""
    found = _exact(scale, sums, expected, (-128 - zero, 127 - zero), mode)
    if found is None:
        count = len(sums) // 255
        raise Refusal(f"sums of {count} inputs are not exact with the scaler of the lanes")
    return found


def _sums(count, zero):
    """Return all sums of ``count`` values of int8 minus ``zero``."""
    return np.arange(-128 * count, 127 * count + 1) - zero * count


def _exact(scale, sums, expected, limits, mode):
    """Return the first weight whose scaled sums equal the expected ones, or None.

    ``sums`` rise. The lanes clamp their results to the ``limits``.
    """
    # A larger sum has no smaller result, so what is exact at both ends of a run of equal results is
    # exact inside.
    steps = np.flatnonzero(np.diff(expected))
    ends = np.unique([0, *steps, *(steps + 1), len(sums) - 1])
    sums, expected = sums[ends], expected[ends]
    if mode == "single":  # where a larger weight gives no other results
        found = fitted_scale(sums, expected, limits, mode)
        return None if found is None else EqualWeights(1, *found)
    for weight in _WEIGHTS:
        if weight * np.abs(sums).max() >= 1 << 31 or not 2.0**-32 < scale / weight < 2.0**31:
            continue
        multiplier, shift = lane_parameters(scale / weight, mode)
        if _equal(weight * sums, multiplier, shift, expected, limits, mode):
            return EqualWeights(weight, multiplier, shift)
    return None


def _equal(sums, multiplier, shift, expected, limits, mode):
    """Whether the lanes compute the expected results."""
    found = lane_results(sums.astype(np.int32), multiplier, shift, mode)
    return np.array_equal(np.clip(found, *limits), expected)


def fitted_scale(
    sums: np.ndarray, expected: np.ndarray, limits: tuple[int, int], mode: str,
    given: tuple[int, int] | None = None,
) -> tuple[int, int] | None:
    """Return a multiplier and a shift with which the lanes compute the expected results, or None.

    Parameters
    ----------
    sums : int64
        Of int32.
    expected : int64
        Without the zero point.
    limits : (int, int)
        To which the lanes clamp the results, also without the zero point.
    mode : str
    given : (int, int), optional
        Multiplier and shift that are tried first.
    """
    if given is not None and -31 <= given[1] <= 31 and 0 <= given[0] < 1 << 31:
        if _equal(sums, *given, expected, limits, mode):
            return given
    # Each sum leaves a range of scales; at a limit it has no end.
    low, high = limits
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (expected - 0.5) / sums, (expected + 0.5) / sums
    above, below = (sums > 0) & (expected > low), (sums < 0) & (expected < high)
    least = max(ends[0][above].max(initial=0.0), ends[1][below].max(initial=0.0))
    above, below = (sums > 0) & (expected < high), (sums < 0) & (expected > low)
    most = min(ends[1][above].min(initial=np.inf), ends[0][below].min(initial=np.inf))
    middle = (least + most) / 2 if most < np.inf else max(2 * least, 1.0)
    for scale in (middle, least * (1 + 2.0**-29), most * (1 - 2.0**-29)):
        if 2.0**-32 < scale < 2.0**31:
            multiplier, shift = lane_parameters(scale, mode)
            if _equal(sums, multiplier, shift, expected, limits, mode):
                return multiplier, shift
    return None
