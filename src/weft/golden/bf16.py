"""Golden arithmetic of BF16: the product of matrices, the clamp, the rounding to bfloat16."""

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["clamp", "matmul_bf16", "to_bfloat16"]

_NAN = np.uint32(0x7FC00000).view(np.float32)  # the one NaN of every result
_NORMAL = np.float32(2.0**-126)  # the least normal number, of binary32 and of bfloat16


def matmul_bf16(a, b, *, start=None, flush_subnormals=False) -> np.ndarray:
    """``acc = fma(a[..., :, k], b[..., k, :], acc)`` for each ``k``, ascending, from ``start``.

    Each fma is that of IEEE 754 in binary32, rounded once, to nearest even::

        acc = float32(float64(a) * float64(b) + float64(acc))

    That is exact. The product has 16 significant bits and is no subnormal of binary64. Where the
    sum needs more than the 53 bits of binary64, the lesser addend lies below a quarter of a unit
    in the last place of the greater one in binary32, and two roundings end where one does.

    Subnormals are kept. With ``flush_subnormals`` those of ``a``, ``b`` and ``start`` are zero of
    their sign, and so is the result of every fma that is subnormal once rounded; one that rounds
    up to the least normal number stays.

    Parameters
    ----------
    a : bfloat16 [..., M, K]
    b : bfloat16 [..., K, N]
        The dimensions in front broadcast with those of ``a``, as in `numpy.matmul`.
    start : float32, optional
        Of a shape that broadcasts to that of the result; +0 where absent. It is the result where K
        is 0.
    flush_subnormals : bool

    Returns
    -------
    float32 [..., M, N]
        Every NaN is 0x7FC00000.

    Raises
    ------
    TypeError
        For ``a`` or ``b`` that is not bfloat16, and ``start`` that is not float32.
    ValueError
        For shapes that do not fit.

    Source: IEEE 754-2019, 5.4.1 (fusedMultiplyAdd), 4.3.1 (rounding), 6.2 (NaN), 6.3 (signs).
    """
    a, b = _typed("a", a, bfloat16), _typed("b", b, bfloat16)
    if a.ndim < 2:
        raise ValueError(f"a must be of shape [..., M, K], not {a.shape}")
    depth = a.shape[-1]
    if b.ndim < 2 or b.shape[-2] != depth:
        raise ValueError(f"b must be of shape [..., {depth}, N], not {b.shape}")
    acc = _started(start, (*_batch(a, b), a.shape[-2], b.shape[-1]))
    a, b = _widened(a), _widened(b)
    with np.errstate(all="ignore"):  # what overflows or is invalid has a result all the same
        if flush_subnormals:
            a, b, acc = _flushed(a), _flushed(b), _flushed(acc)
        a, b = a.astype(np.float64), b.astype(np.float64)
        for k in range(depth):
            product = a[..., :, k, None] * b[..., None, k, :]
            acc = (product + acc.astype(np.float64)).astype(np.float32)
            if flush_subnormals:
                acc = _flushed(acc)
    return _canonical(acc)


def clamp(values, low=None, high=None) -> np.ndarray:
    """``low`` where ``x <= low``, else ``high`` where ``x >= high``, else ``x``; never -0 but +0.

    NaN compares with nothing and stays. Subnormals do too. Without any limit ``x`` is as it was.

    Parameters
    ----------
    values : float32 [..., N]
    low, high : float32 [N] or scalar, optional
        No NaN, ``low`` at most ``high``; where absent, no limit.

    Returns
    -------
    float32 [..., N]
        Every NaN is 0x7FC00000.

    Raises
    ------
    TypeError
        For what is not float32.
    ValueError
        For a limit that is NaN or of another shape, and for ``low`` above ``high``.

    Source: IEEE 754-2019, 5.11 (comparisons), 6.2.3 (NaN).
    """
    y = values = _typed("values", values, np.float32)
    low, high = _limit("low", low, values), _limit("high", high, values)
    if low is not None and high is not None and not np.all(low <= high):
        low, high = np.broadcast_arrays(low, high)
        least, most = low[low > high][0], high[low > high][0]
        raise ValueError(f"low must be at most high ({most}), not {least}")
    if high is not None:
        y = np.where(values >= high, high, y)
    if low is not None:
        y = np.where(values <= low, low, y)
    if low is not None or high is not None:
        y = np.where(y == 0, np.float32(0), y)
    return _canonical(y)


def to_bfloat16(values) -> np.ndarray:
    """``values`` rounded to nearest even, to the 8 significant bits of bfloat16.

    On the bits of binary32, of which bfloat16 is the upper half, infinities included::

        upper = (bits + 0x7FFF + (bits >> 16) % 2) >> 16

    What is nearer to 2**128 than to the greatest finite number, or in the middle, is infinity.
    Subnormals are kept; a normal number never becomes one.

    Parameters
    ----------
    values : float32 [...]

    Returns
    -------
    bfloat16 [...]
        Every NaN is 0x7FC0.

    Raises
    ------
    TypeError
        For what is not float32.

    Source: IEEE 754-2019, 4.3.1 (rounding), 7.4 (overflow).
    """
    bits = _canonical(_typed("values", values, np.float32)).view(np.uint32)
    upper = np.asarray((bits + 0x7FFF + (bits >> 16) % 2) >> 16).astype(np.uint16)
    return upper.view(bfloat16)


def _typed(name, value, dtype):
    """``value`` as an array, refused where it is not of ``dtype``."""
    array = np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {np.dtype(dtype)}, not {array.dtype}")
    return array


def _batch(a, b):
    """What the dimensions in front of both matrices broadcast to."""
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        rule = f"of a batch that broadcasts with {a.shape[:-2]}"
        raise ValueError(f"b must be {rule}, not {b.shape[:-2]}") from None


def _started(start, shape):
    """What the sums of a result of ``shape`` start from."""
    start = _typed("start", np.float32(0) if start is None else start, np.float32)
    try:
        return np.broadcast_to(start, shape)
    except ValueError:
        raise ValueError(
            f"start must be of a shape that broadcasts to {shape}, not {start.shape}"
        ) from None


def _limit(name, value, values):
    """A limit as an array, or None."""
    if value is None:
        return None
    value = _typed(name, value, np.float32)
    if value.ndim and value.shape != values.shape[-1:]:
        rule = f"a scalar or of shape {values.shape[-1:]}"
        raise ValueError(f"{name} must be {rule}, not {value.shape}")
    if np.any(np.isnan(value)):
        raise ValueError(f"{name} must be a number, not nan")
    return value


def _widened(x):
    """bfloat16 as float32: the upper half of its bits, exactly."""
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _flushed(x):
    """float32, each subnormal zero of its sign."""
    return np.where(np.abs(x) < _NORMAL, np.copysign(np.float32(0), x), x)


def _canonical(x):
    """float32, each NaN the one NaN."""
    return np.where(np.isnan(x), _NAN, x)
