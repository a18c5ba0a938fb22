"""Long sums for a BF16 MAC cell, different in each slot, with random bubbles, clears and starts."""

from functools import partial

import numpy as np
from ml_dtypes import bfloat16

from verif.mac_cell.steps import Steps
from verif.mac_cell.vectors import EDGES

__all__ = ["LONG_SUMS"]

SEEDS = 128  # runs of each kind, one for each seed
STEPS = 300
SLOTS = 8


def gaussian(rng, shape):
    """Normally distributed operands and starts."""
    a, b = rng.normal(size=(2, *shape)).astype(bfloat16).view(np.uint16)
    return a, b, rng.normal(size=shape).astype(np.float32).view(np.uint32)


def wide(rng, shape):
    """Operands of all magnitudes with finite products, starts of all magnitudes."""
    a, b = _signed(rng, rng.integers(64 << 7, 190 << 7, (2, *shape)), 16)
    return a, b, _signed(rng, rng.integers(0, 0x7F800000, shape), 32)


def subnormal(rng, shape):
    """Sums near the least normal number; half of the operands are below it."""
    tiny = _signed(rng, rng.integers(0, 2 << 7, shape), 16)
    other = _signed(rng, rng.integers(0x3D00, 0x3FFF, shape), 16)
    swap = rng.random(shape) < 0.5
    c = _signed(rng, rng.integers(0, 3 << 23, shape), 32)
    return np.where(swap, other, tiny), np.where(swap, tiny, other), c


def special(rng, shape):
    """Normally distributed numbers, mixed with zeros, infinities, NaNs and extremes."""
    a, b, c = gaussian(rng, shape)
    rare = rng.random((3, *shape)) < [[[0.1]], [[0.1]], [[0.5]]]
    return (
        np.where(rare[0], rng.choice(EDGES, shape), a),
        np.where(rare[1], rng.choice(EDGES, shape), b),
        np.where(rare[2], _edges(rng, shape), c),
    )


def _run(rng, kind):
    """The fields of `Steps` for one run."""
    shape = STEPS, SLOTS
    a, b, c = kind(rng, shape)
    en = rng.random(shape) < rng.choice([0.5, 0.9, 1])
    clear, start = rng.random((2, *shape)) < rng.choice([0.01, 0.2])
    clear[0] |= ~start[0]
    # Operands without ``en`` are noise.
    a, b = (np.where(en, x, rng.choice(EDGES, shape)) for x in (a, b))
    return a, b, c, en, clear, start


def _bubbles(rng):
    """Starts of all kinds, followed by steps without ``en``."""
    shape = STEPS, SLOTS
    a, b = rng.choice(EDGES, (2, *shape))
    zeros, start = np.zeros((2, *shape), bool)
    start[::10] = True
    return a, b, _edges(rng, shape), zeros, zeros, start


def _steps(run):
    fields = zip(*(run(np.random.default_rng(seed)) for seed in range(SEEDS)), strict=True)
    types = np.uint16, np.uint16, np.uint32, bool, bool, bool
    return Steps(*(np.stack(f).astype(t) for f, t in zip(fields, types, strict=True)))


# The functions that make the `Steps` of each kind; the seed of a run is its number.
LONG_SUMS = {
    f"{kind.__name__} sums": partial(_steps, partial(_run, kind=kind))
    for kind in (gaussian, wide, subnormal, special)
}
LONG_SUMS["bubbles"] = partial(_steps, _bubbles)


def _signed(rng, magnitude, width):
    """``magnitude`` with a random sign bit."""
    return magnitude | rng.integers(0, 2, magnitude.shape) << width - 1


def _edges(rng, shape):
    """EDGES as binary32, half of them with noise in the lower 16 bits."""
    noise = rng.integers(0, 1 << 16, shape) * rng.integers(0, 2, shape)
    return rng.choice(EDGES, shape).astype(np.int64) << 16 | noise
