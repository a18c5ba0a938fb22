"""Checks of arguments; each error names the argument, the rule and the wrong value."""

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["INT32", "columns", "fits", "float32", "integers", "reals", "require"]

INT32 = (-(1 << 31), (1 << 31) - 1)


def integers(name: str, value, low: int, high: int, rule: str | None = None) -> np.ndarray:
    """Return ``value`` as int64; ValueError if a number is not in ``low..high``.

    ``rule`` replaces the text "in low..high" in the error message.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer or an array of integers, not {array.dtype}")
    require(name, rule or f"in {low}..{high}", array, (array >= low) & (array <= high))
    return array.astype(np.int64)


def reals(name: str, value, dtype) -> np.ndarray:
    """Return ``value`` as ``dtype``; ValueError if a number is not finite and above 0."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, not {array.dtype}")
    with np.errstate(over="ignore", under="ignore"):
        converted = array.astype(dtype)
    holds = np.isfinite(converted) & (converted > 0)
    require(name, f"finite and above 0 in {np.dtype(dtype)}", array, holds)
    return converted


def float32(name: str, value) -> np.ndarray:
    """Return ``value`` as float32; Python numbers are rounded.

    Raises TypeError for an array whose type float32 cannot represent exactly.
    """
    array = np.asarray(value)
    real = array.dtype.kind in "iuf"
    if hasattr(value, "dtype"):
        real = array.dtype == bfloat16 or real and np.can_cast(array.dtype, np.float32)
    if not real:
        raise TypeError(f"{name} must be float32, not {array.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):  # a signalling NaN becomes a quiet one
        return array.astype(np.float32)


def columns(name: str, array: np.ndarray, shape: tuple[int, ...], lines="columns of b"):
    """Return ``array``; ValueError if it does not broadcast to ``shape`` [batch..., N]."""
    if not fits(array.shape, shape):
        rule = f"one number or one for each of the {shape[-1]} {lines}"
        if len(shape) > 1:
            rule += f", or of a shape that broadcasts to {shape}"
        raise ValueError(f"{name} must be {rule}, not of shape {array.shape}")
    return array


def fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Return whether an array of ``shape`` broadcasts to ``whole``."""
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def require(name: str, rule: str, values, holds) -> None:
    """Raise ValueError with the first of ``values`` where ``holds`` is false."""
    if not np.all(holds):
        raise ValueError(f"{name} must be {rule}, not {np.ravel(values)[~np.ravel(holds)][0]}")
