"""Directed vectors for a BF16 MAC cell, in classes of difficulty; each vector is a single sum.

Each class is a function that returns arrays ``a, b, c`` of one length: the bits of bfloat16,
bfloat16 and binary32 values. They are the same on every call, and the same for a MAC cell that
flushes subnormal numbers.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

__all__ = ["EDGES", "SEED", "Steps", "VECTORS"]

SEED = 1

# 32 magnitudes with both signs: zero, subnormal, normal, infinity, quiet and signalling NaN.
EDGES = np.array([
    sign | magnitude for sign in (0, 0x8000) for magnitude in (
        0x0000, 0x0001, 0x0002, 0x0003, 0x0040, 0x0055, 0x007E, 0x007F,
        0x0080, 0x0081, 0x00FF, 0x0100, 0x0C80, 0x1F80, 0x1FFF, 0x2000,
        0x3380, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x3FB5, 0x3FFF, 0x4000,
        0x4B00, 0x5F80, 0x7E80, 0x7F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0,
    )
], np.uint16)

# Fractions of binary32: no ones, all ones, alternating; carries from both ends and the middle.
FRACTIONS = np.array([
    0x000000, 0x000001, 0x000002, 0x000003, 0x0000FF, 0x000100, 0x00FFFF, 0x2AAAAA, 0x3FFFFF,
    0x400000, 0x555555, 0x7F0000, 0x7FFF00, 0x7FFFFE, 0x7FFFFF,
])
# Significands, in 128ths: products of 1, just above 1, just below and above 2, just below 4.
PAIRS = np.array([
    (128, 128), (129, 128), (129, 129), (181, 181), (217, 151), (226, 145), (129, 255),
    (128, 255), (192, 192), (170, 255), (213, 214), (255, 255),
])


def multiplier():
    """Every bfloat16 times each of EDGES, as ``a`` and as ``b``, added to +0."""
    every, edges = np.meshgrid(np.arange(1 << 16, dtype=np.uint16), EDGES, indexing="ij")
    a = np.concatenate([every, edges.copy()], axis=None)
    b = np.concatenate([edges, every], axis=None)
    return a, b, np.zeros(len(a), np.uint32)


def alignment():
    """Every difference of exponents at which the numbers overlap, and some far beyond."""
    far = [56, 64, 80, 100, 128, 160, 200, 256, 300, 370]
    difference, exponent, sign, negative, fraction, pair = _grid(
        np.array([*range(-48, 49), *far, *(-d for d in far)]),
        np.array([0, 1, 2, 24, 60, 127, 200, 254]), np.arange(2), np.arange(2), FRACTIONS,
        np.arange(len(PAIRS)),
    )
    product = np.maximum(exponent, 1) - 127 - difference
    valid = (product >= -252) & (product <= 254)
    a, b = _factors(PAIRS[pair], product, negative)
    return a[valid], b[valid], _single(sign, exponent, fraction)[valid]


def cancellation():
    """A product minus itself, and minus its neighbours at distances of all powers of two."""
    steps = np.array([0, 3, 5, -3, -5, *(s << j for s in (1, -1) for j in range(25))])
    exponent, negative, pair, step = _grid(
        np.arange(-160, 129), np.arange(2), np.arange(2 * len(PAIRS)), steps
    )
    random = np.random.default_rng(SEED).integers(128, 256, PAIRS.shape)
    a, b = _factors(np.concatenate([PAIRS, random])[pair], exponent, negative)
    return a, b, _beside(-_product(a, b), step)


def ties():
    """Ties, as many that round up as down, and their neighbours."""
    rng = np.random.default_rng(SEED)
    significands = np.arange(128, 256)
    pairs = np.stack(np.meshgrid(significands, significands), axis=-1).reshape(-1, 2)
    zeros = _zeros(pairs.prod(axis=1))
    count = 40_000
    parts = []
    for places in range(15):  # the last bit of the product, or of the start, is cut off
        pair = rng.choice(pairs[zeros == places], count)
        fraction = rng.integers(0, 1 << 23, count)
        parts.append((pair, fraction, places + rng.integers(8, 11, count)))
    for places in range(23):
        pair = rng.choice(pairs, count)
        fraction = (rng.integers(0, 1 << 23, count) | 1) << places & (1 << 23) - 1
        parts.append((pair, fraction, rng.integers(-2, 2, count) - places))
    pair, fraction, difference = (np.concatenate(part) for part in zip(*parts, strict=True))
    exponent = rng.integers(40, 210, len(difference))
    sign, negative = rng.integers(0, 2, (2, len(difference)))
    # Both exact, in units of the last place of the smaller one.
    start = (fraction | 1 << 23) << np.maximum(difference - 9, 0)
    product = pair.prod(axis=1) << np.maximum(9 - difference, 0)
    total = np.abs(np.where(sign == negative, start + product, start - product))
    cut = np.frexp(total.astype(np.float64))[1] - 24
    tie = (cut > 0) & (total & (1 << np.maximum(cut, 0)) - 1 == 1 << np.maximum(cut - 1, 0))
    a, b = _factors(pair[tie], (exponent - 127 - difference)[tie], negative[tie])
    c = _single(sign, exponent, fraction)[tie]
    return _cross(a, b, c, [-1, 0, 1])


def carries():
    """Sums near every power of two: carries through the whole fraction into the exponent."""
    rng = np.random.default_rng(SEED)
    exponent = np.repeat(np.arange(-149, 129), 500)
    return _about(rng, np.exp2(exponent), exponent + rng.integers(-30, 26, len(exponent)))


def overflow():
    """Sums near the greatest number and half a unit above it; products beyond it."""
    rng = np.random.default_rng(SEED)
    limits = 2.0**128 - 2.0 ** np.array([101, 102, 103, 104, 105])
    limit = np.repeat(limits, 20_000)
    near = _about(rng, limit, rng.integers(90, 130, len(limit)))
    exponent, negative, pair, c = _grid(
        np.arange(125, 255), np.arange(2), np.arange(len(PAIRS)),
        _single(*_grid(np.arange(2), np.array([1, 127, 231, 253, 254]), FRACTIONS)),
    )
    return _joined(near, (*_factors(PAIRS[pair], exponent, negative), c))


def subnormal():
    """Operands, products, starts and sums below the least normal number; sums just above it."""
    rng = np.random.default_rng(SEED)
    count = 200_000
    # In halves of the last place, so that ties are included; the least normal number is 2^24.
    sizes = [
        np.arange(64), (1 << 24) + np.arange(-16, 17), 1 << np.arange(25),
        rng.integers(0, 1 << 25, 500), rng.integers(0, 1 << 12, 500),
    ]
    half = np.repeat(np.concatenate(sizes), 150)
    near = _about(rng, half * 2.0**-150, rng.integers(-175, -124, len(half)))
    tiny, other = rng.integers(0, 128, count), rng.integers(0, 0x7F80, count)
    signs = rng.integers(0, 2, (2, count)) << 15
    tiny_pair = rng.integers(0, 128, (2, count)) | signs
    exponent, fraction = rng.integers(0, 30, count), rng.integers(0, 1 << 23, count)
    c = _single(rng.integers(0, 2, count), exponent, fraction)
    return _joined(
        near,
        (tiny | signs[0], other | signs[1], c),
        (other | signs[0], tiny | signs[1], c),
        # Exponents with which the product is as small as the start.
        (tiny | signs[0], rng.integers(0x3F00, 0x4A00, count) | signs[1], c),
        (*tiny_pair, c),
    )


def zeros():
    """Zeros of both signs in each operand, products too small to matter, sums that cancel to 0."""
    rng = np.random.default_rng(SEED)
    zero, other, sign, swap, c = _grid(
        np.array([0, 0x8000]), EDGES[(EDGES & 0x7FFF) < 0x7F80], np.arange(2), np.arange(2),
        _single(0, *_grid(np.array([0, 1, 127, 254]), FRACTIONS)),
    )
    with_zero = np.where(swap, other, zero), np.where(swap, zero, other), c | sign << 31
    exponent, negative, pair, small = _grid(
        np.arange(-252, -120), np.arange(2), np.arange(len(PAIRS)),
        np.array([0, 1, 2, 3, 0x80000000, 0x80000001, 0x80000002, 0x80000003]),
    )
    too_small = *_factors(PAIRS[pair], exponent, negative), small
    count = 100_000
    a, b = _factors(
        rng.integers(128, 256, (count, 2)), rng.integers(-126, 127, count),
        rng.integers(0, 2, count),
    )
    exact = -_product(a, b)
    return _joined(with_zero, too_small, (a, b, _beside(exact, 0)))


def special():
    """Infinities, quiet and signalling NaNs in each operand, beside numbers of all kinds."""
    magnitudes = [
        0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000,
        0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC00001, 0x7FFFFFFF, 0x7FA00000, 0x7F80FFFF,
    ]
    c = np.array([sign | magnitude for sign in (0, 1 << 31) for magnitude in magnitudes])
    more = np.array([0x7FBF, 0xFFBF, 0x7FFF, 0xFFFF, 0x7FA0])
    values = np.concatenate([EDGES, more])
    return _typed(_grid(values, values, c))


def random():
    """Random bits; then random numbers with exponents so close that all of them matter."""
    rng = np.random.default_rng(SEED)
    count = 500_000
    every = *rng.integers(0, 1 << 16, (2, count)), rng.integers(0, 1 << 32, count)
    exponent = rng.integers(1, 255, count)
    pair = rng.integers(128, 256, (count, 2))
    near = np.clip(exponent - 127 + rng.integers(-26, 27, count), -252, 254)
    a, b = _factors(pair, near, rng.integers(0, 2, count))
    c = _single(rng.integers(0, 2, count), exponent, rng.integers(0, 1 << 23, count))
    return _joined(every, (a, b, c))


def _steps(maker):
    return Steps.single(*maker())


# The functions that make the `Steps` of each class.
VECTORS = {
    maker.__name__: partial(_steps, maker) for maker in (
        special, zeros, alignment, cancellation, ties, carries, overflow, subnormal, random,
        multiplier,
    )
}


def _grid(*axes):
    """All combinations of the values of the axes, as flat arrays."""
    return [grid.reshape(-1) for grid in np.meshgrid(*axes, indexing="ij")]


def _single(sign, exponent, fraction):
    """The bits of a binary32 with these fields."""
    return np.asarray(sign << 31 | exponent << 23 | fraction).astype(np.uint32)


def _factors(pair, exponent, negative):
    """``a, b`` with ``a * b = pair[0] * pair[1] / 2^14 * 2^exponent``, times -1 if ``negative``.

    With an exponent in -252..254 both are normal; with one up to 4 less, one or both are not.
    """
    low = exponent >> 1
    a = low + 127 << 7 | pair[:, 0] & 127 | negative << 15
    b = exponent - low + 127 << 7 | pair[:, 1] & 127
    return a.astype(np.uint16), b.astype(np.uint16)


def _product(a, b):
    """``a * b`` in float64, exact."""
    a, b = ((x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for x in (a, b))
    return a * b


def _beside(value, step):
    """The bits of the binary32 nearest to ``value``, plus ``step``."""
    with np.errstate(over="ignore"):
        bits = value.astype(np.float32).view(np.uint32)
    return (bits + np.asarray(step)).astype(np.uint32)


def _about(rng, value, exponent):
    """Products with ``exponent``, and starts with which the sum is ``value`` or next to it."""
    exponent = np.clip(exponent, -252, 254)
    count = len(value)
    pair = np.where(
        rng.random((count, 1)) < 0.5, PAIRS[rng.integers(0, len(PAIRS), count)],
        rng.integers(128, 256, (count, 2)),
    )
    a, b = _factors(pair, exponent, rng.integers(0, 2, count))
    sign = rng.choice([-1, 1], count)
    return _cross(a, b, _beside(sign * value - _product(a, b), 0), [-2, -1, 0, 1, 2])


def _cross(a, b, c, steps):
    """Each vector, with ``steps`` added to the bits of its start."""
    index, step = _grid(np.arange(len(a)), np.array(steps))
    return a[index], b[index], (c[index] + step).astype(np.uint32)


def _zeros(values):
    """The number of zeros at the low end of integers."""
    return np.frexp((values & -values).astype(np.float64))[1] - 1


def _joined(*parts):
    return _typed([np.concatenate(part) for part in zip(*parts, strict=True)])


def _typed(vectors):
    a, b, c = vectors
    return a.astype(np.uint16), b.astype(np.uint16), c.astype(np.uint32)


BATCH = 1 << 20  # steps in memory at a time


@dataclass(frozen=True)
class Steps:
    """Steps as arrays [runs, steps, slots]; the first step of a run starts or clears its sum.

    The number of slots is the MAC cell's SLOTS; or 1, for runs of one step, which then rotate
    through the sums of the cell.

    Attributes
    ----------
    a, b : uint16
        The bits of bfloat16 values.
    c : uint32
        The bits of binary32 values: the start of the sum, with ``start``.
    en : bool
        A step.
    clear : bool
        Start from +0.
    start : bool
        Start from ``c``.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    en: np.ndarray
    clear: np.ndarray
    start: np.ndarray

    @classmethod
    def single(cls, a, b, c):
        """One run of one step for each vector: ``a * b + c``."""
        ones = np.broadcast_to(True, len(a))
        return cls(*(x[:, None, None] for x in (a, b, c, ones, ~ones, ones)))

    def batches(self):
        """Runs in batches that fit in memory, each with the number of its first run."""
        runs, *run = self.a.shape
        count = max(1, BATCH // int(np.prod(run)))
        fields = vars(self).values()
        for first in range(0, runs, count):
            yield first, Steps(*(field[first : first + count] for field in fields))
