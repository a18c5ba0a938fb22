"""Values of 16 bits in jobs of int8: neighbouring columns have the digits of a sum, or of a value.

A sum of values of 16 bits is several sums of their bytes::

    pairs        total[n] = 2^8 * t[2n] + t[2n + 1]
    the others   total[n] = 2^24 * t[4n] + 2^16 * t[4n + 1] + 2^8 * t[4n + 2] + t[4n + 3]

with ``t = sums + bias`` of each column, modulo 2^32. The scale is the one of the last column of a
total. The result ``y`` is stored in bytes of int8:

``pairs``
    y has 16 bits, within ``pair_low`` and ``pair_high``. Byte 2n of a pixel is its high byte, and
    byte 2n + 1 its low byte less 128, so ``y = 256 * byte[2n] + byte[2n + 1] + 128``.
``quads``
    y has 8 bits: byte 4n + 3. The other columns are as without the flag.
``quad_pairs``
    y has 16 bits as with ``pairs``: bytes 4n + 2 and 4n + 3. The other columns are as with
    ``pairs``.
``words``
    y has 32 bits: ``y = 2^24 * byte[4n] + 2^16 * (byte[4n + 1] + 128) + 2^8 * (byte[4n + 2] + 128)
    + byte[4n + 3] + 128``.
"""

import numpy as np

from weft.checks import require

__all__ = ["DIGITS", "check_digits", "joined", "split_values", "split_words"]

_PAIR, _QUAD = 2, 4
DIGITS = {"pairs": _PAIR, "quads": _QUAD, "quad_pairs": _QUAD, "words": _QUAD}  # columns of a sum
_LIMITS = -128, 127


def check_digits(job) -> None:
    """Raise ValueError for a field whose effect is undefined with a flag of `DIGITS`."""
    for flag, size in DIGITS.items():
        if not getattr(job, flag):
            continue
        rule = f"a multiple of {size} with {flag}"
        require("columns", rule, job.columns, job.columns % size == 0)
        if flag == "quads":
            continue
        for name, value in (("zero", 0), ("low", _LIMITS[0]), ("high", _LIMITS[1])):
            found = getattr(job, name)
            require(name, f"{value} with {flag}", found, found == value)
        if flag == "words":
            continue
        rule = f"at most pair_high ({job.pair_high})"
        require("pair_low", rule, job.pair_low, job.pair_low <= job.pair_high)


def joined(total, size: int) -> np.ndarray:
    """The totals in the last of each ``size`` columns; the other columns stay.

    Parameters
    ----------
    total : int32 [pixels, N]
    size : int
        2 or 4; it divides N.

    Returns
    -------
    int32 [pixels, N]
    """
    wide = total.astype(np.int64)
    digits = wide.reshape(len(wide), -1, size)
    digits[:, :, -1] = (digits << np.arange(8 * (size - 1), -1, -8)).sum(2)
    return digits.reshape(wide.shape).astype(np.int32)  # modulo 2^32


def split_values(values, low: int, high: int) -> np.ndarray:
    """The bytes of values within limits of 16 bits: the high one, and the low one less 128.

    Parameters
    ----------
    values : int [pixels, N]
    low, high : int
        -32768..32767.

    Returns
    -------
    int8 [pixels, 2 * N]
    """
    y = np.clip(values, low, high).astype(np.int64)
    return np.stack([y >> 8, (y & 0xFF) - 128], -1).astype(np.int8).reshape(len(y), -1)


def split_words(values) -> np.ndarray:
    """The bytes of values of 32 bits: the highest one, and the others less 128.

    Parameters
    ----------
    values : int [pixels, N]

    Returns
    -------
    int8 [pixels, 4 * N]
    """
    y = values.astype(np.int64)
    low = [(y >> shift & 0xFF) - 128 for shift in (16, 8, 0)]
    return np.stack([y >> 24, *low], -1).astype(np.int8).reshape(len(y), -1)
