"""Random operands of all kinds for a core, and their golden product."""

import numpy as np
from ml_dtypes import bfloat16

from weft.golden import matmul, matmul_bf16

__all__ = ["KINDS", "Floats", "Integers", "numbers"]


def numbers(config):
    """The operands of ``config``: `Integers` or `Floats`."""
    return Integers() if config.dtype == "int8" else Floats(config.flush_subnormals)


class Integers:
    """int8 operands and int32 sums, which wrap."""

    EXTREMES = np.array([-128, -127, -1, 0, 1, 127], np.int8)

    def random(self, rng, lines, k) -> np.ndarray:
        """Random operands [lines, K] over the whole range."""
        return rng.integers(-128, 128, (lines, k), dtype=np.int8)

    def product(self, a, b, start=None) -> np.ndarray:
        """The sums [M, N] of A [M, K] and B [N, K], with initial sums ``start``."""
        return matmul(a, b.T, start=start)


class Floats:
    """bfloat16 operands and float32 sums.

    Parameters
    ----------
    flush : bool
        Subnormal numbers count as zeros.
    """

    EXTREMES = np.array(
        [0x7F7F, 0xFF7F, 0x0080, 0x8080, 0x007F, 0x8001, 0x0000, 0x8000, 0x3F80, 0xBF80], np.uint16
    ).view(bfloat16)

    def __init__(self, flush):
        self.flush = flush

    def random(self, rng, lines, k, kind=None) -> np.ndarray:
        """Random operands [lines, K] of one of `KINDS`; None: a random kind."""
        draw = KINDS[kind or list(KINDS)[rng.integers(len(KINDS))]]
        return draw(rng, lines, k).astype(np.uint16).view(bfloat16)

    def random_sums(self, rng, lines, k, kind=None) -> np.ndarray:
        """Random initial sums [lines, K] of a kind, with random lower 16 bits."""
        upper = self.random(rng, lines, k, kind).view(np.uint16).astype(np.uint32)
        return (upper << 16 | rng.integers(0, 1 << 16, (lines, k), np.uint32)).view(np.float32)

    def product(self, a, b, start=None) -> np.ndarray:
        """The sums [M, N] of A [M, K] and B [N, K], with initial sums ``start``."""
        return matmul_bf16(a, b.T, start=start, flush_subnormals=self.flush)


def _gaussian(rng, *shape):
    """Numbers near 1, like most numbers in a network."""
    return rng.normal(size=shape).astype(bfloat16).view(np.uint16)


def _wide(rng, lines, k):
    """All exponents; exponents in a line are close to each other, so that sums cancel or round."""
    exponent = rng.integers(0, 255, (lines, 1)) + rng.integers(-6, 7, (lines, k))
    return _finite(rng, exponent)


def _subnormal(rng, *shape):
    """Subnormal numbers, and numbers with a subnormal product."""
    return _finite(rng, rng.choice([0, 63, 127], shape) + rng.integers(-9, 10, shape))


def _special(rng, *shape):
    """About one number in a line is a NaN with any payload, infinity, zero, or the smallest."""
    nan = rng.integers(0x7F81, 0x8000, shape)
    other = rng.choice([0x7F80, 0x7F80, 0x0000, 0x7F7F, 0x0080, 0x0001], shape)
    special = np.where(rng.random(shape) < 0.25, nan, other) | rng.integers(0, 2, shape) << 15
    return np.where(rng.random(shape) < 1 / shape[-1], special, _gaussian(rng, *shape))


def _finite(rng, exponent):
    """Numbers of these exponents, subnormal for 0 and below; random sign and fraction."""
    shape = exponent.shape
    fraction = rng.integers(0, 2, shape) << 15 | rng.integers(0, 128, shape)
    return fraction | np.clip(exponent, 0, 254) << 7


KINDS = {"gaussian": _gaussian, "wide": _wide, "subnormal": _subnormal, "special": _special}
