"""Golden model of the integer matrix product: the exact sum, wrapped to the accumulator width."""

import numpy as np

__all__ = ["matmul"]


def matmul(a, b, *, a_zero_point=None, b_zero_point=None, start=None, bits=32):
    """``start + (a - a_zero_point) @ (b - b_zero_point)``, exact, then wrapped to ``bits`` bits.

    Parameters
    ----------
    a, b : array of integers of at most 16 bits
        Any shapes that `numpy.matmul` accepts.
    a_zero_point : int or array, optional
        One number, or one for each row of ``a``.
    b_zero_point : int or array, optional
        One number, or one for each column of ``b``.
    start : array of integers, optional
        Initial sums; zero if absent.
    bits : int
        Width of the two's complement accumulator, 2 to 64.

    Returns
    -------
    array
        int32 up to 32 bits, int64 above.
    """
    a, b = (_shifted(*x) for x in ((a, a_zero_point, -2), (b, b_zero_point, -1)))
    total = _product(a, b)
    if start is not None:
        total = total + np.asarray(start).astype(np.int64)
    # Shifting the sign bit to bit 63 and back copies it to all higher bits.
    wrapped = (total << (64 - bits)) >> (64 - bits)
    return wrapped.astype(np.int32) if bits <= 32 else wrapped


def _shifted(x, zero_point, axis):
    """``x - zero_point`` in int64; a vector of zero points is applied along ``axis`` of ``x``."""
    x = np.asarray(x)
    if x.dtype.kind not in "iu" or x.dtype.itemsize > 2:
        raise TypeError(f"golden operands must be integers of at most 16 bits, not {x.dtype}")
    x = x.astype(np.int64)
    if zero_point is None:
        return x
    zero_point = np.asarray(zero_point).astype(np.int64)
    if zero_point.ndim and axis == -2 and x.ndim > 1:
        zero_point = zero_point[:, None]
    elif zero_point.ndim and x.ndim == 1:
        zero_point = zero_point[0]
    return x - zero_point


def _product(a, b):
    """``a @ b`` of int64, exact, or modulo 2**64 if it does not fit."""
    largest = a.shape[-1] * _magnitude(a) * _magnitude(b)
    # numpy's matmul is fast for floats only. A float type is used if it holds every product and
    # every partial sum exactly, in any order.
    for dtype, digits in ((np.float32, 24), (np.float64, 53)):
        if largest < 1 << digits:
            # OpenBLAS may compute on unused lanes and set the floating-point flags of their values
            # (https://github.com/numpy/numpy/issues/24067). The products themselves are exact.
            with np.errstate(all="ignore"):
                return np.matmul(a.astype(dtype), b.astype(dtype)).astype(np.int64)
    return np.matmul(a, b)


def _magnitude(x):
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0
