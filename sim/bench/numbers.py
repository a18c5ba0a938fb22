"""What a core's numbers are: operands at random, of every kind, and their golden product."""

import numpy as np
from ml_dtypes import bfloat16

from weft.golden import matmul, matmul_bf16

__all__ = ["KINDS", "Floats", "Integers", "numbers"]


def numbers(config):
    """The numbers of the cores of ``config``."""
    return Integers() if config.dtype == "int8" else Floats(config.flush_subnormals)


class Integers:
    """Operands of int8, sums of int32 that wrap."""

    EXTREMES = np.array([-128, -127, -1, 0, 1, 127], np.int8)

    def random(self, rng, lines, k) -> np.ndarray:
        """Operands [lines, K] over the whole range."""
        return rng.integers(-128, 128, (lines, k), dtype=np.int8)

    def product(self, a, b, start=None) -> np.ndarray:
        """The sums [M, N] of rows of A [M, K] with columns of B [N, K], from ``start`` on."""
        return matmul(a, b.T, start=start)


class Floats:
    """Operands of bfloat16, sums of float32.

    Parameters
    ----------
    flush : bool
        Subnormal ones count as zeros.
    """

    EXTREMES = np.array(
        [0x7F7F, 0xFF7F, 0x0080, 0x8080, 0x007F, 0x8001, 0x0000, 0x8000, 0x3F80, 0xBF80], np.uint16
    ).view(bfloat16)

    def __init__(self, flush):
        self.flush = flush

    def random(self, rng, lines, k, kind=None) -> np.ndarray:
        """Operands [lines, K] of one of `KINDS`, at random where absent."""
        draw = KINDS[kind or list(KINDS)[rng.integers(len(KINDS))]]
        return draw(rng, lines, k).astype(np.uint16).view(bfloat16)

    def starts(self, rng, lines, k, kind=None) -> np.ndarray:
        """Sums [lines, K] to start from, likewise, and random in the bits that bfloat16 lacks."""
        upper = self.random(rng, lines, k, kind).view(np.uint16).astype(np.uint32)
        return (upper << 16 | rng.integers(0, 1 << 16, (lines, k), np.uint32)).view(np.float32)

    def product(self, a, b, start=None) -> np.ndarray:
        """The sums [M, N] of rows of A [M, K] with columns of B [N, K], from ``start`` on."""
        return matmul_bf16(a, b.T, start=start, flush_subnormals=self.flush)


def _gaussian(rng, *shape):
    """Near 1, as most numbers of a network are."""
    return rng.normal(size=shape).astype(bfloat16).view(np.uint16)


def _wide(rng, lines, k):
    """Of all exponents, those of a line within a few of each other: their sums cancel, or round."""
    exponent = rng.integers(0, 255, (lines, 1)) + rng.integers(-6, 7, (lines, k))
    return _finite(rng, exponent)


def _subnormal(rng, *shape):
    """Subnormal ones, and those whose product is."""
    return _finite(rng, rng.choice([0, 63, 127], shape) + rng.integers(-9, 10, shape))


def _special(rng, *shape):
    """About one in a line is NaN with whatever payload, infinity, zero or of least size."""
    nan = rng.integers(0x7F81, 0x8000, shape)
    other = rng.choice([0x7F80, 0x7F80, 0x0000, 0x7F7F, 0x0080, 0x0001], shape)
    special = np.where(rng.random(shape) < 0.25, nan, other) | rng.integers(0, 2, shape) << 15
    return np.where(rng.random(shape) < 1 / shape[-1], special, _gaussian(rng, *shape))


def _finite(rng, exponent):
    """Of these exponents, subnormal from 0 on down; any sign, any fraction."""
    shape = exponent.shape
    fraction = rng.integers(0, 2, shape) << 15 | rng.integers(0, 128, shape)
    return fraction | np.clip(exponent, 0, 254) << 7


KINDS = {"gaussian": _gaussian, "wide": _wide, "subnormal": _subnormal, "special": _special}
