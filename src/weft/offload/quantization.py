"""Float arrays as int8 values with a scale, symmetric around 0."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Quantized", "StaticWeights", "quantized"]

LIMIT = 127  # the largest magnitude; -128 is not used, so that the range is symmetric


@dataclass(frozen=True, eq=False)
class Quantized:
    """``values * scale``.

    Attributes
    ----------
    values : array of int8
    scale : array of float32, or None
        It broadcasts to ``values``. None: the values are integers, whose sums are int32.
    """

    values: np.ndarray
    scale: np.ndarray | None


def quantized(array: np.ndarray, axes: tuple[int, ...]) -> Quantized:
    """``values = round(array / scale)``, to nearest even, with ``scale = max(|array|) / 127``.

    Parameters
    ----------
    array : array of float32, float16 or bfloat16
    axes : tuple of int
        Axes that share one scale; the scale has size 1 along them.

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    array = array.astype(np.float32, copy=False)
    peak = np.maximum(array.max(axes, keepdims=True), -array.min(axes, keepdims=True))
    if not np.isfinite(peak).all():
        bad = array[~np.isfinite(array)][0]
        raise ValueError(f"operands must be finite to become int8, not {bad}")
    # A scale of 0 would divide by 0: all values are 0 then, with any scale. A peak so small that
    # its scale is 0 has values of 0, too.
    scale = peak / np.float32(LIMIT)
    scale = np.where(scale == 0, np.float32(1), scale)
    values = np.rint(array / scale)
    # The quotient of a subnormal peak may exceed the limit: its scale has few digits.
    return Quantized(np.clip(values, -LIMIT, LIMIT).astype(np.int8), scale)


class StaticWeights:
    """The weights of one operator: they are converted again only after they have changed.

    Threads may share it.

    Parameters
    ----------
    convert : callable
        Makes a `Quantized` of an array.
    """

    def __init__(self, convert: Callable[[np.ndarray], Quantized]):
        self._convert = convert
        self._kept: tuple[np.ndarray, Quantized] | None = None
        self._lock = threading.Lock()

    def __call__(self, array: np.ndarray) -> Quantized:
        """Return the `Quantized` of an array."""
        with self._lock:
            if self._kept is None or not _same_bits(self._kept[0], array):
                copy = array.copy()  # the caller may write to its own array
                self._kept = copy, self._convert(copy)
            return self._kept[1]


def _same_bits(a, b):
    """Whether two arrays are equal, NaN and signs of zeros included."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    bits = f"u{a.itemsize}"
    return np.array_equal(a.view(bits), np.ascontiguousarray(b).view(bits))
