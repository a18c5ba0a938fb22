"""Sums, multipliers and shifts that meet every class of rounding, for golden and its oracles."""

import numpy as np
import pytest

LOW, HIGH = -(1 << 31), (1 << 31) - 1


@pytest.fixture
def sums():
    """``sums(rng, scale)``: one int32 for each scale, of every size, most of them near a tie."""
    return _sums


@pytest.fixture
def triples():
    """``triples(rng, count)``: int32 vectors of sums, multipliers and shifts."""
    return _triples


def _sums(rng, scale):
    count = len(scale)
    kinds = np.array([
        rng.integers(LOW, HIGH, count, endpoint=True) >> rng.integers(0, 32, count),
        _near(rng, scale, (rng.integers(-300, 300, count) + 0.5)),  # ties of 8-bit results
        _near(rng, scale, (rng.integers(-(1 << 30), 1 << 30, count) >> 8) + 0.5),
        _near(rng, scale, rng.choice([LOW, HIGH], count)),          # where results leave int32
        rng.choice([LOW, LOW + 1, -2, -1, 0, 1, 2, HIGH - 1, HIGH], count),
        rng.choice([-1, 1], count) * (1 << rng.integers(0, 31, count)),
    ])
    return kinds[rng.integers(0, len(kinds), count), np.arange(count)].astype(np.int32)


def _near(rng, scale, result):
    """The sum that ``scale`` takes next to ``result``, or a neighbour of it."""
    exact = np.rint(result / scale) + rng.integers(-1, 2, len(scale))
    return np.clip(exact, LOW, HIGH).astype(np.int64)


def _triples(rng, count):
    kinds = np.array([
        rng.integers(1 << 30, HIGH, count, endpoint=True),
        rng.choice([1 << 30, (1 << 30) + 1, 3 << 29, HIGH - 1, HIGH], count),
        (1 << 30) + (1 << rng.integers(0, 30, count)),
        np.full(count, 1 << 30),  # a power of two: exact ties
    ])
    multiplier = kinds[rng.integers(0, len(kinds), count), np.arange(count)]
    shift = rng.integers(-31, 31, count, endpoint=True)
    acc = _sums(rng, multiplier * 2.0 ** (shift - 31))
    multiplier[rng.random(count) < 0.01] = 0
    return acc, multiplier.astype(np.int32), shift.astype(np.int32)
