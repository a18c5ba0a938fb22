"""Golden models of BF16: matrix product, clamp, and rounding to bfloat16."""

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["clamp", "matmul_bf16", "to_bfloat16"]

_NAN = np.uint32(0x7FC00000).view(np.float32)  # the only NaN in results
_NORMAL = np.float32(2.0**-126)  # smallest normal number of binary32 and of bfloat16


def matmul_bf16(a, b, *, start=None, flush_subnormals=False) -> np.ndarray:
    """``acc = fma(a[..., :, k], b[..., k, :], acc)`` for each ``k``, ascending, from ``start``.

    Each fma is the IEEE 754 operation in binary32, rounded once, to nearest even. It is computed
    in binary64::

        acc = float32(float64(a) * float64(b) + float64(acc))

    This gives the same bits. The product has 16 significant bits and is never subnormal in
    binary64. If the sum needs more than the 53 bits of binary64, the smaller addend is below a
    quarter of a unit in the last place of the larger one in binary32; then rounding twice gives
    the same result as rounding once.

    Subnormals are kept. With ``flush_subnormals``, subnormal values of ``a``, ``b`` and ``start``
    count as zero with their sign. An fma result that is subnormal after rounding becomes zero with
    its sign; one that rounds up to the smallest normal number stays.

    Parameters
    ----------
    a : bfloat16 [..., M, K]
    b : bfloat16 [..., K, N]
        Leading dimensions broadcast with the leading dimensions of ``a``, as in `numpy.matmul`.
    start : float32, optional
        Initial sums, of a shape that broadcasts to the result's; +0 if absent. If K is 0, they
        are the result.
    flush_subnormals : bool

    Returns
    -------
    float32 [..., M, N]
        Every NaN is 0x7FC00000.

    Raises
    ------
    TypeError
        If ``a`` or ``b`` is not bfloat16, or ``start`` is not float32.
    ValueError
        If the shapes do not match.

    Source: IEEE 754-2019, 5.4.1 (fusedMultiplyAdd), 4.3.1 (rounding), 6.2 (NaN), 6.3 (signs).
    """
    a, b = _typed("a", a, bfloat16), _typed("b", b, bfloat16)
    if a.ndim < 2:
        raise ValueError(f"a must be of shape [..., M, K], not {a.shape}")
    depth = a.shape[-1]
    if b.ndim < 2 or b.shape[-2] != depth:
        raise ValueError(f"b must be of shape [..., {depth}, N], not {b.shape}")
    acc = _initial(start, (*_batch(a, b), a.shape[-2], b.shape[-1]))
    a, b = _widened(a), _widened(b)
    with np.errstate(all="ignore"):  # overflows and invalid operations have defined results
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
    """``low`` if ``x <= low``, else ``high`` if ``x >= high``, else ``x``; -0 becomes +0.

    NaN and subnormals are kept. Without a limit ``x`` is not changed.

    Parameters
    ----------
    values : float32 [..., N]
    low, high : float32 [N] or scalar, optional
        Not NaN, and ``low`` at most ``high``. None: no limit.

    Returns
    -------
    float32 [..., N]
        Every NaN is 0x7FC00000.

    Raises
    ------
    TypeError
        If an argument is not float32.
    ValueError
        If a limit is NaN or has another shape, or ``low`` is above ``high``.

    Source: IEEE 754-2019, 5.11 (comparisons), 6.2.3 (NaN).
    """
    y = values = _typed("values", values, np.float32)
    low, high = _limit("low", low, values), _limit("high", high, values)
    if low is not None and high is not None and not np.all(low <= high):
        low, high = np.broadcast_arrays(low, high)
        low, high = low[low > high][0], high[low > high][0]
        raise ValueError(f"low must be at most high ({high}), not {low}")
    if high is not None:
        y = np.where(values >= high, high, y)
    if low is not None:
        y = np.where(values <= low, low, y)
    if low is not None or high is not None:
        y = np.where(y == 0, np.float32(0), y)
    return _canonical(y)


def to_bfloat16(values) -> np.ndarray:
    """``values`` rounded to bfloat16 (8 significant bits), to nearest even.

    A bfloat16 is the upper half of a binary32. Computed on the bits, infinities included::

        upper = (bits + 0x7FFF + (bits >> 16) % 2) >> 16

    A value becomes infinity if it is at least halfway from the largest finite number to 2**128.
    Subnormals are kept; a normal number never becomes subnormal.

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
        If ``values`` is not float32.

    Source: IEEE 754-2019, 4.3.1 (rounding), 7.4 (overflow).
    """
    bits = _canonical(_typed("values", values, np.float32)).view(np.uint32)
    upper = np.asarray((bits + 0x7FFF + (bits >> 16) % 2) >> 16).astype(np.uint16)
    return upper.view(bfloat16)


def _typed(name, value, dtype):
    """``value`` as an array; TypeError if it is not of ``dtype``."""
    array = np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {np.dtype(dtype)}, not {array.dtype}")
    return array


def _batch(a, b):
    """The broadcast leading dimensions of both matrices."""
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        rule = f"of a batch that broadcasts with {a.shape[:-2]}"
        raise ValueError(f"b must be {rule}, not {b.shape[:-2]}") from None


def _initial(start, shape):
    """The initial sums of a result of ``shape``."""
    start = _typed("start", np.float32(0) if start is None else start, np.float32)
    try:
        return np.broadcast_to(start, shape)
    except ValueError:
        raise ValueError(
            f"start must be of a shape that broadcasts to {shape}, not {start.shape}"
        ) from None


def _limit(name, value, values):
    """A valid limit as an array, or None."""
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
    """bfloat16 as float32, exactly: its bits are the upper half."""
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _flushed(x):
    """float32, with each subnormal replaced by zero of its sign."""
    return np.where(np.abs(x) < _NORMAL, np.copysign(np.float32(0), x), x)


def _canonical(x):
    """float32, with each NaN replaced by the canonical NaN."""
    return np.where(np.isnan(x), _NAN, x)
