"""Values of 16 bits in jobs of int8: neighbouring columns have the digits of a sum, or of a value.

A sum of values of 16 bits is several sums of their bytes::

    pairs   total[n] = 2^8 * t[2n] + t[2n + 1]
    quads   total[n] = 2^24 * t[4n] + 2^16 * t[4n + 1] + 2^8 * t[4n + 2] + t[4n + 3]

with ``t = sums + bias`` of each column, modulo 2^32. The scale is the one of the last column of a
total.

With ``pairs`` the result ``y`` has 16 bits. Byte 2n of a pixel is its high byte, and byte 2n + 1
its low byte less 128, so ``y = 256 * byte[2n] + byte[2n + 1] + 128``. With ``quads`` it is byte
4n + 3; the other columns are as without the flag.
"""

import numpy as np

from weft.checks import require

__all__ = ["check_digits", "joined", "split_values"]

_PAIR, _QUAD = 2, 4
_LIMITS = -128, 127


def check_digits(job) -> None:
    """Raise ValueError for a field whose effect is undefined with ``pairs`` or ``quads``."""
    for flag, size in (("pairs", _PAIR), ("quads", _QUAD)):
        if getattr(job, flag):
            rule = f"a multiple of {size} with {flag}"
            require("columns", rule, job.columns, job.columns % size == 0)
    if job.pairs:
        for name, value in (("zero", 0), ("low", _LIMITS[0]), ("high", _LIMITS[1])):
            found = getattr(job, name)
            require(name, f"{value} with pairs", found, found == value)


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


def split_values(values) -> np.ndarray:
    """The bytes of values that saturate to 16 bits: the high one, and the low one less 128.

    Parameters
    ----------
    values : int [pixels, N]

    Returns
    -------
    int8 [pixels, 2 * N]
    """
    limits = np.iinfo(np.int16)
    y = np.clip(values, limits.min, limits.max).astype(np.int64)
    return np.stack([y >> 8, (y & 0xFF) - 128], -1).astype(np.int8).reshape(len(y), -1)
