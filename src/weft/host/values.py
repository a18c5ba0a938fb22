"""Conversion of int8 and uint8 operands with zero points to int8 values with an offset."""

from dataclasses import dataclass

import numpy as np

from weft.checks import columns, integers

__all__ = ["Values", "check_depth", "check_type", "correct", "has_any", "zero_point"]

# Largest K for which a sum always fits int32: K * 128 * 128, or K * 255 * 255 with zero points.
_RAW_LIMIT = 131_071
_SHIFTED_LIMIT = 33_025

_HALF = 0x80  # uint8 - 128 is int8: the same bits with the top bit inverted


@dataclass(frozen=True)
class Values:
    """One operand as int8: ``values - offset`` are the numbers that the caller means.

    Attributes
    ----------
    values : array of int8
    offset : int or array
        One integer, or [batch..., M] for A and [batch..., N] for B.
    """

    values: np.ndarray
    offset: int | np.ndarray

    @classmethod
    def of(cls, array: np.ndarray, zero: int | np.ndarray) -> "Values":
        """Convert an int8 or uint8 array with a checked zero point."""
        if array.dtype == np.int8:
            return cls(array, zero)
        return cls((array ^ np.uint8(_HALF)).view(np.int8), zero - _HALF)


def check_type(name: str, array) -> np.ndarray:
    """Return ``array`` as a numpy array; TypeError if its type is not int8 or uint8."""
    array = np.asarray(array)
    if array.dtype not in (np.int8, np.uint8):
        raise TypeError(f"{name} must be int8 or uint8, not {array.dtype}")
    return array


def zero_point(name: str, value, dtype, lines: str, shape: tuple[int, ...]) -> int | np.ndarray:
    """Return a zero point as int, or as an int64 array that broadcasts to ``shape``; 0 for None.

    ``shape`` is [batch..., size]; ``lines`` names its last axis in error messages, as in "rows of
    a". Raises TypeError if ``value`` is not integer, and ValueError if its shape does not broadcast
    or a number is outside the range of ``dtype``.
    """
    if value is None:
        return 0
    limits = np.iinfo(dtype)
    array = columns(name, integers(name, value, limits.min, limits.max), shape, lines)
    return array if array.ndim else int(array)


def check_depth(k: int, plain: bool) -> None:
    """Raise ValueError if a sum over ``k`` could exceed int32.

    ``plain``: both operands are int8 without zero points.
    """
    if k > (_RAW_LIMIT if plain else _SHIFTED_LIMIT):
        kind = "int8" if plain else "uint8 operands or zero points"
        limit = _RAW_LIMIT if plain else _SHIFTED_LIMIT
        raise ValueError(f"K must be at most {limit} with {kind}, not {k}")


def has_any(values: int | np.ndarray) -> bool:
    """Return whether a value is not 0."""
    # For a Python integer, np.any takes some microseconds.
    return values != 0 if isinstance(values, int) else bool(values.any())


def correct(raw, k, a_offset, b_offset, a_sums, b_sums) -> np.ndarray:
    """Subtract the offsets from ``raw = a @ b`` [..., M, N]; exact in int64, returned as int32.

    ``(a - p) @ (b - q) = a @ b - p * sums(b) - sums(a) * q + k * p * q``

    ``p`` is ``a_offset``, one per row; ``q`` is ``b_offset``, one per column. ``a_sums()`` and
    ``b_sums()`` return the sums of the int8 values over K, of shapes [..., M] and [..., N].
    """
    with_a, with_b = has_any(a_offset), has_any(b_offset)
    if not with_a and not with_b:
        return raw
    total = raw.astype(np.int64)
    p, q = np.asarray(a_offset)[..., None], np.atleast_1d(b_offset)[..., None, :]
    if with_a:
        total -= p * b_sums()[..., None, :]
    if with_b:
        total -= a_sums()[..., :, None] * q
    total += k * p * q
    return total.astype(np.int32)
