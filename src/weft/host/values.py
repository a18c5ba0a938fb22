"""Operands as a caller gives them, checked, and as the core takes them: int8 with an offset."""

from dataclasses import dataclass

import numpy as np

from weft.host.checks import columns, integers

__all__ = ["Values", "check_depth", "check_type", "correct", "zero_point"]

# Where the sum of K products cannot leave int32: K * 128 * 128, and K * 255 * 255 with zero points.
_RAW_LIMIT = 131_071
_SHIFTED_LIMIT = 33_025

_HALF = 0x80  # uint8 less 128 is int8: the same bits, the top one inverted


@dataclass(frozen=True)
class Values:
    """One operand: int8 ``values``, of which ``offset`` is what they stand above the numbers meant.

    ``offset`` is an integer, or an array of one for each row of A (column of B), behind the axes
    of a batch if it differs there.
    """

    values: np.ndarray
    offset: int | np.ndarray

    @classmethod
    def of(cls, array: np.ndarray, zero: int | np.ndarray) -> "Values":
        """From int8 or uint8 with a checked zero point."""
        if array.dtype == np.int8:
            return cls(array, zero)
        return cls((array ^ np.uint8(_HALF)).view(np.int8), zero - _HALF)


def check_type(name: str, array) -> np.ndarray:
    """``array`` as a numpy array; TypeError unless it is of int8 or uint8."""
    array = np.asarray(array)
    if array.dtype not in (np.int8, np.uint8):
        raise TypeError(f"{name} must be int8 or uint8, not {array.dtype}")
    return array


def zero_point(name: str, value, dtype, lines: str, shape: tuple[int, ...]) -> int | np.ndarray:
    """A zero point as an int, or as an array of int64 that broadcasts to ``shape``; 0 for None.

    ``lines`` says what the last axis of ``shape`` counts, as in "rows of a"; the axes before it are
    the batch. TypeError for what are no integers, ValueError for a shape or a number that the
    operand or its ``dtype`` does not allow.
    """
    if value is None:
        return 0
    limits = np.iinfo(dtype)
    array = columns(name, integers(name, value, limits.min, limits.max), shape, lines)
    return array if array.ndim else int(array)


def check_depth(k: int, plain: bool) -> None:
    """ValueError where a sum over ``k`` might leave int32; ``plain`` is int8 without offsets."""
    if k > (_RAW_LIMIT if plain else _SHIFTED_LIMIT):
        kind = "int8" if plain else "uint8 operands or zero points"
        limit = _RAW_LIMIT if plain else _SHIFTED_LIMIT
        raise ValueError(f"K must be at most {limit} with {kind}, not {k}")


def correct(raw, k, a_offset, b_offset, a_sums, b_sums) -> np.ndarray:
    """The product less its offsets, exact in int64, as int32.

    ``(a - p) @ (b - q) = a @ b - p * sums(b) - sums(a) * q + k * p * q``, with p down the rows and
    q along the columns of each product of a batch. ``a_sums`` and ``b_sums`` give, when called, the
    sums of the int8 values over K: of [..., M] and of [..., N].
    """
    with_a, with_b = np.any(a_offset), np.any(b_offset)
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
