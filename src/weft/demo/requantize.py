"""Requantization of int32 sums to int8 on the host, bit-exact to TFLite Micro."""

import numpy as np

__all__ = ["add_bias", "requantize", "scale"]

_SHIFTS = (-31, 31)


def add_bias(sums, bias) -> np.ndarray:
    """``sums + bias`` in int32, two's complement wrap as in the accumulator.

    Parameters
    ----------
    sums : int32 [..., N]
    bias : int32 [N] or scalar

    Returns
    -------
    int32 [..., N]
    """
    sums, bias = _int32("sums", sums), _int32("bias", bias)
    _fits("bias", bias, sums)
    return (sums + bias).astype(np.int32)


def scale(acc, multiplier, shift) -> np.ndarray:
    """``acc * multiplier / 2**31 * 2**shift``, rounded twice: mode ``tflite``.

    With ``e = max(-shift, 0)``::

        x = int32(acc << max(shift, 0))                                    wraps
        v = (x * multiplier + 2**30) >> 31
        y = (v >> e) + ((v mod 2**e) > ((2**e - 1) >> 1) + (v < 0))

    The second rounding rounds ties away from zero: -0.5 gives -1.

    Parameters
    ----------
    acc : int32 [..., N]
    multiplier : int [N] or scalar
        Each 0 or in 2**30..2**31-1.
    shift : int [N] or scalar
        Each in -31..31; a positive value shifts to the left.

    Returns
    -------
    int32 [..., N]

    Raises
    ------
    TypeError
        If an argument is not an integer or an array of integers.
    ValueError
        If a multiplier, a shift, or a shape breaks its rule.

    Source: TFLite Micro, ``MultiplyByQuantizedMultiplier`` with double rounding.
    """
    acc, multiplier, shift = (
        _int32("acc", acc),
        _integers("multiplier", multiplier),
        _integers("shift", shift),
    )
    _fits("multiplier", multiplier, acc)
    _fits("shift", shift, acc)
    _require(
        "multiplier",
        "0 or in 2**30..2**31-1",
        multiplier,
        (multiplier == 0) | (multiplier >= 1 << 30) & (multiplier < 1 << 31),
    )
    low, high = _SHIFTS
    _require("shift", f"in {low}..{high}", shift, (shift >= low) & (shift <= high))
    x = (acc << np.maximum(shift, 0)).astype(np.int32).astype(np.int64)
    v = (x * multiplier + (1 << 30)) >> 31
    e = np.maximum(-shift, 0)
    mask = (np.int64(1) << e) - 1
    return ((v >> e) + ((v & mask) > (mask >> 1) + (v < 0))).astype(np.int32)


def requantize(acc, multiplier, shift, zero_point=0, low=-128, high=127) -> np.ndarray:
    """``clamp(scale(acc, multiplier, shift) + zero_point, low, high)`` as int8.

    The zero point is added without wrap. A fused ReLU has ``low = zero_point``.

    Parameters
    ----------
    acc, multiplier, shift
        As in `scale`.
    zero_point, low, high : int
        Each in -128..127, ``low <= high``.

    Returns
    -------
    int8 [..., N]

    Raises
    ------
    TypeError, ValueError
        As `scale`; and if the zero point or a limit is out of range.
    """
    for name, value in (("zero_point", zero_point), ("low", low), ("high", high)):
        value = _integers(name, value)
        if value.ndim:
            raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
        _require(name, "in -128..127", value, (value >= -128) & (value <= 127))
    if low > high:
        raise ValueError(f"low must be at most high ({high}), not {low}")
    y = scale(acc, multiplier, shift).astype(np.int64) + int(zero_point)
    return np.clip(y, low, high).astype(np.int8)


def _integers(name, value):
    """``value`` as int64."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.uint64(2**63 - 1):
        raise ValueError(f"{name} must be under 2**63, not {array.max()}")
    return array.astype(np.int64)


def _int32(name, value):
    """``value`` as int64, each number within int32."""
    array = _integers(name, value)
    _require(name, "in -2**31..2**31-1", array, (array >= -(1 << 31)) & (array < 1 << 31))
    return array


def _fits(name, value, sums):
    """Raise ValueError if ``value`` is neither a scalar nor one number per column of ``sums``."""
    if value.ndim and value.shape != sums.shape[-1:]:
        raise ValueError(
            f"{name} must be a scalar or of shape {sums.shape[-1:]}, not {value.shape}"
        )


def _require(name, rule, values, valid):
    """Raise ValueError with the first of ``values`` that is not valid."""
    if not np.all(valid):
        raise ValueError(f"{name} must be {rule}, not {np.ravel(values)[~np.ravel(valid)][0]}")
