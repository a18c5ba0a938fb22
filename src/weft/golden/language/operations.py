"""The operations of a language model on integers: scaling, norm, rotation, functions by tables.

All values are integers. A map of ``q`` bits has the real value ``integer / 2**q``. Arrays are int64
here; each function states the widths that hardware needs.
"""

import dataclasses
import functools

import numpy as np

__all__ = [
    "ARGUMENT_BITS", "EXP_BITS", "MAX_SHIFT", "Table", "exp_table", "exponential", "leading_one",
    "look_up", "reciprocal", "reciprocal_table", "rms_norm", "rotate", "rsqrt_table", "saturate",
    "scale", "silu_table",
]

MAX_SHIFT = 47  # of `scale`
ARGUMENT_BITS = 16  # of a table: 9 select a piece, 7 interpolate
EXP_BITS = 12  # after the binary point in the argument of the exponential: 16 bits are 0 to 16
_PIECES, _STEPS = 512, 128


def saturate(v, bits=16) -> np.ndarray:
    """``v`` limited to two's complement of ``bits`` bits."""
    top = (1 << (bits - 1)) - 1
    return np.clip(v, -top - 1, top)


def scale(v, m, shift, bits=16) -> np.ndarray:
    """``saturate((v * m + 2**(shift - 1)) >> shift, bits)``: half rounds up.

    Parameters
    ----------
    v : int32 [...]
    m : 17 bits, signed
        Stored multipliers are int16. Multipliers from tables are 0 to 65,535.
    shift : int or array
        1 to 47. The product has 48 bits.
    bits : int
        16 for maps, 8 for the cache.
    """
    v, m, shift = (np.asarray(x, np.int64) for x in (v, m, shift))
    return saturate((v * m + (np.int64(1) << (shift - 1))) >> shift, bits)


# Functions by tables.

@dataclasses.dataclass(frozen=True)
class Table:
    """A function of 16 bits as 512 straight pieces.

    Attributes
    ----------
    base : int32 [512]
        The value at the start of each piece: 16 bits, signed or unsigned, by the function.
    slope : int16 [512]
        The value at the end of the piece minus ``base``.
    """

    base: np.ndarray
    slope: np.ndarray


def look_up(table: Table, u) -> np.ndarray:
    """``base[i] + ((slope[i] * f + 64) >> 7)``; ``i`` is the upper 9 bits of ``u``, ``f`` the
    lower 7.

    Parameters
    ----------
    table : Table
    u : unsigned 16 bits [...]
    """
    u = np.asarray(u, np.int64)
    piece, part = u >> 7, u & (_STEPS - 1)
    return table.base[piece] + ((table.slope[piece].astype(np.int64) * part + 64) >> 7)


def _table(y, low, high):
    """The table of 513 real values: rounded half to even, then limited."""
    y = np.clip(np.rint(y), low, high).astype(np.int32)
    slope = np.diff(y)
    assert np.abs(slope).max() < 1 << 15
    return Table(y[:-1], slope.astype(np.int16))


@functools.cache
def exp_table() -> Table:
    """``2**15 * exp(-u / 2**12)``, at most 32,767; ``u`` of 16 bits is 0 to 16.

    Error of `look_up`: at most 5.5, which is 1.7e-4 of the largest value.
    """
    return _table(32768 * np.exp(-np.arange(_PIECES + 1) * _STEPS / (1 << EXP_BITS)), 0, 32767)


@functools.cache
def reciprocal_table() -> Table:
    """``2**16 / (1 + u / 2**16)``, at most 65,535."""
    return _table(65536 / (1 + np.arange(_PIECES + 1) / _PIECES), 0, 65535)


def rsqrt_table(dim: int) -> tuple[Table, int]:
    """The table of a norm over ``dim`` channels, and ``r``, for `rms_norm`.

    With ``dim = c * 4**r``, ``1 <= c < 4``, the value is ``2**15 * sqrt(c / z)``, at most 65,535.
    Bit 15 of ``u`` selects ``z = 1 + f`` or ``z = 2 * (1 + f)``, where ``f = (u mod 2**15) /
    2**15``.
    """
    r = (dim.bit_length() - 1) // 2
    half = np.arange(_PIECES // 2) / (_PIECES // 2)
    z = np.concatenate([1 + half, 2 + 2 * half, [4]])
    return _table(32768 * np.sqrt(dim / 4**r / z), 0, 65535), r


def silu_table(bits: int) -> Table:
    """``x / (1 + exp(-x))`` of a map of ``bits`` bits, with as many bits: ``u = x + 2**15``.

    Error of `look_up`: at most ``1 + 2**(10 - bits)``, where the value does not saturate.
    """
    x = (np.arange(_PIECES + 1) * _STEPS - 32768) / 2.0**bits
    return _table(2.0**bits * x / (1 + np.exp(-np.maximum(x, -700))), -32768, 32767)


def exponential(distance, shift=0) -> np.ndarray:
    """``exp(-distance * 2**shift / 2**12)`` with 15 bits: 0 to 32,767.

    ``distance`` is 0 or more; above 16 the result is that of 16, which is 0.
    """
    u = np.minimum(np.asarray(distance, np.int64) << shift, (1 << ARGUMENT_BITS) - 1)
    return look_up(exp_table(), u)


def leading_one(v) -> np.ndarray:
    """The position of the first one of ``v``, 1 or more and of at most 48 bits."""
    return np.frexp(np.asarray(v, np.float64))[1].astype(np.int64) - 1  # exact below 2**53


def _after_leading_one(v, k, bits):
    """The ``bits`` bits of ``v`` that follow its first one, at ``k``; zeros below bit 0."""
    v = np.asarray(v, np.int64)
    moved = np.where(k >= bits, v >> np.maximum(k - bits, 0), v << np.maximum(bits - k, 0))
    return moved & ((1 << bits) - 1)


def reciprocal(v) -> tuple[np.ndarray, np.ndarray]:
    """``1 / v`` as ``(m, e)``: ``m * 2**-e``, with a relative error of at most 6e-5.

    ``v`` is 1 or more, of 32 bits: the table takes the 16 bits after its first one, at ``k``;
    ``e = k + 16``. ``m`` is 32,768 to 65,535.
    """
    k = leading_one(v)
    return look_up(reciprocal_table(), _after_leading_one(v, k, 16)), k + 16


def rms_norm(x, squares, table: Table, shift: int) -> np.ndarray:
    """``x * sqrt(dim / squares)``, int16.

    ``k`` is the first one of ``squares``, and ``u`` is bit 0 of ``k`` followed by the 15 bits after
    the first one. ``scale(x, look_up(table, u), (k >> 1) + shift)``; the multiplier has a relative
    error of at most 1e-4.

    Parameters
    ----------
    x : int16 [..., dim]
    squares : 48 bits [..., 1]
        The sum of the squares of ``x``, and the epsilon in these units: 1 or more.
    table : Table
        Of `rsqrt_table`.
    shift : int
        ``15 - r - bits`` for a result of ``bits`` bits. ``(k >> 1) + shift`` is 1 or more for the
        smallest ``squares``, which is the epsilon.
    """
    k = leading_one(squares)
    u = ((k & 1) << 15) | _after_leading_one(squares, k, 15)
    return scale(x, look_up(table, u), (k >> 1) + shift)


def rotate(x, cos, sin) -> np.ndarray:
    """Each pair ``(a, b)`` of neighbours rotated: ``(a cos - b sin, a sin + b cos)``.

    Each of the two is ``scale(sum of the two products, 1, 15)``; the sum has 33 bits.

    Parameters
    ----------
    x : int16 [..., head_dim]
    cos, sin : int16 [..., head_dim / 2]
        With 15 bits; 1 is 32,767.
    """
    a, b = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = scale(a * cos - b * sin, 1, 15)
    y[..., 1::2] = scale(a * sin + b * cos, 1, 15)
    return y
