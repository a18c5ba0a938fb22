"""Random operands of each data type for a core, and their golden products and results."""

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag
from weft.dtypes import DTYPES
from weft.golden import clamp, matmul, matmul_bf16, scaled, to_bfloat16
from weft.host.packing import ENTRY, LIMITS

__all__ = ["KINDS", "NUMBERS", "Floats", "Integers", "numbers"]


def numbers(config):
    """The operands of ``config``: an object of its data type."""
    return NUMBERS[config.dtype](config)


class Integers:
    """int8 operands and int32 sums, which wrap.

    `Floats` has the same attributes: the ENTRY of parameters of a column, the EXTREMES of operands,
    and their MINIMUM, a number whose square is as large as possible.
    """

    ENTRY = ENTRY
    EXTREMES = np.array([-128, -127, -1, 0, 1, 127], np.int8)
    MINIMUM = np.int8(-128)

    def random(self, rng, lines, k) -> np.ndarray:
        """Random operands [lines, K] over the whole range."""
        return rng.integers(-128, 128, (lines, k), dtype=np.int8)

    def product(self, a, b, start=None) -> np.ndarray:
        """The sums [M, N] of A [M, K] and B [N, K], with initial sums ``start``."""
        return matmul(a, b.T, start=start)

    def moderate(self, rng, lines, k) -> np.ndarray:
        """Random operands [lines, K] whose products do not overflow."""
        return self.random(rng, lines, k)

    def row_sums(self, a):
        """The sums of the rows of A, for the zero points of B: [M]."""
        return a.sum(axis=1, dtype=np.int64)

    def results(self, config, flags, sums, rows, entries, table) -> np.ndarray:
        """The results of a job, from its ``sums`` and ``rows``, the `row_sums` of its A.

        ``entries`` are the parameters of its columns, ``table`` is the activation table.
        """
        if JobFlag.REQUANTIZE not in flags:
            return sums
        acc = sums.astype(np.int64) + entries["bias"]
        if config.b_zero_point != "none":
            acc -= rows[:, None] * entries["b_zero"]
        acc, mode, multiplier = acc.astype(np.int32), config.requantize, entries["multiplier"]
        if mode == "onnx":
            y = scaled(acc, scale=multiplier.view(np.float32), mode=mode)
        else:
            y = scaled(acc, multiplier.astype(np.int64), entries["shift"], mode=mode)
        y = np.clip(y.astype(np.int64) + entries["zero"], entries["low"], entries["high"]) & 255
        return (table[y] if JobFlag.TABLE in flags else y).astype(np.uint8)


class Floats:
    """bfloat16 operands and float32 sums.

    Parameters
    ----------
    flush : bool
        Subnormal numbers count as zeros.
    """

    ENTRY = LIMITS
    MINIMUM = bfloat16(-3e38)  # its square overflows
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

    def moderate(self, rng, lines, k) -> np.ndarray:
        """Random operands [lines, K] whose sizes are near 1."""
        return self.random(rng, lines, k, "gaussian")

    def row_sums(self, a):
        """0: BF16 has no zero points."""
        return 0

    def results(self, config, flags, sums, rows, entries, table) -> np.ndarray:
        """The results of a job, from its ``sums``; ``entries`` are the limits of its columns."""
        if JobFlag.CLAMP in flags:
            sums = clamp(sums, entries["low"], entries["high"])
        return to_bfloat16(sums) if JobFlag.ROUND in flags else sums


def _gaussian(rng, *shape):
    """Numbers of both signs whose sizes are near 1, like most numbers in a network."""
    return rng.normal(size=shape).astype(bfloat16).view(np.uint16)


def _wide(rng, lines, k):
    """All exponents; exponents in a line are close to each other, so that sums cancel or round."""
    exponent = rng.integers(0, 255, (lines, 1)) + rng.integers(-6, 7, (lines, k))
    return _finite(rng, exponent)


def _subnormal(rng, *shape):
    """Subnormal numbers, and numbers with a subnormal product."""
    return _finite(rng, rng.choice([0, 63, 127], shape) + rng.integers(-9, 10, shape))


def _special(rng, *shape):
    """About one number in a line is special: a NaN with any payload, infinity, zero, the largest
    number, the smallest normal one or the smallest one; of any sign.
    """
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
# The layer "bench" of the registry: by the name of a data type, what makes its object of a Config.
NUMBERS = DTYPES.layer(
    "bench", int8=lambda config: Integers(), bf16=lambda config: Floats(config.flush_subnormals)
)
