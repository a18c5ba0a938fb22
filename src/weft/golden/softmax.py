"""Golden model of SOFTMAX: rows of int8, bit-exact with TensorFlow Lite Micro."""

import numpy as np

from weft.checks import require

__all__ = ["softmax"]

_ONE = (1 << 31) - 1  # the largest number below 1, with 31 fractional bits


def softmax(x, exponentials) -> np.ndarray:
    """``256 * exp(x[i]) / sum(exp(x)) - 128`` of each row, in fixed-point numbers::

        e[i]  = exponentials[max(x) - x[i]]
        total = sum of e[i], each rounded to 19 fractional bits
        z     = 31 - floor(log2(total)), so total * 2^z lies in 2^31..2^32
        scale = 2^62 / (total * 2^z), by three steps of Newton
        y[i]  = min(round(scale * e[i] * 2^(z - 66)), 255) - 128

    A number of Newton's steps has 29 fractional bits. Each product is rounded to as many bits as
    its second factor has.

    Parameters
    ----------
    x : int8 [M, N]
    exponentials : int [256]
        ``exp(-d)`` for each difference ``d``, with 31 fractional bits; the first one is the largest
        number below 1.

    Returns
    -------
    int8 [M, N]

    Raises
    ------
    ValueError
        If ``exponentials`` has other values.
    """
    table = np.asarray(exponentials, np.int64)
    require("exponentials[0]", f"{_ONE}", table[0], table[0] == _ONE)
    require("exponentials", "0 or more", table, table >= 0)
    rows = np.asarray(x, np.int64)
    terms = table[rows.max(1, keepdims=True) - rows]
    y = np.empty(rows.shape, np.int64)
    for row, own in enumerate(terms):
        total = int(((own + (1 << 11)) >> 12).sum())
        zeros = 32 - total.bit_length()
        scale = _reciprocal(total << zeros)
        last = 34 - zeros  # the bit that rounds
        y[row] = ((_product(own, scale) >> last) + 1) >> 1
    return (np.minimum(y, 255) - 128).astype(np.int8)


def _product(a, b):
    """``a * b / 2^31``, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def _reciprocal(total):
    """``2^62 / total`` for 2^31 <= total < 2^32: less than 1, with 31 fractional bits."""
    half = total >> 1  # from 1/2 on, with 31 fractional bits
    # The first estimate is 48/17 - 32/17 * half.
    estimate = 1515870810 + _product(-1010580540, half)
    for _ in range(3):
        error = (1 << 29) - _product(half, estimate)
        estimate += 4 * _product(estimate, error)
    return min(2 * estimate, _ONE)
