"""Fixed-point arithmetic of TFLite, against fractions and hand-computed values."""

import math
from fractions import Fraction

import numpy as np
import pytest

from weft.golden import scaled
from weft.models.kernels import fixed_point

EDGES = [-(1 << 31), -(1 << 31) + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, 1 << 30, (1 << 31) - 1]


def half_away(x):
    """A fraction rounded, ties away from zero."""
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x))


@pytest.mark.parametrize("exponent", [0, 1, 2, 7, 31])
def test_round_shift_rounds_ties_away_from_zero(exponent):
    values = [*EDGES, *(k << exponent >> 1 for k in range(-9, 10))]
    expected = [half_away(Fraction(x, 1 << exponent)) for x in values]
    assert fixed_point.round_shift(np.array(values), exponent).tolist() == expected


def test_high_mul_saturates_and_rounds_ties_up():
    a, b = np.meshgrid(EDGES, EDGES)
    expected = [
        min(math.floor(Fraction(x * y, 1 << 31) + Fraction(1, 2)), (1 << 31) - 1)
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    ]
    assert fixed_point.high_mul(a, b).ravel().tolist() == expected
    assert max(expected) == (1 << 31) - 1


def test_multiply_equals_the_golden_model():
    rng = np.random.default_rng(5)
    acc = rng.integers(-(1 << 31), 1 << 31, 4000).astype(np.int32)
    multiplier = rng.integers(1 << 30, 1 << 31, 4000)
    shift = rng.integers(-31, 31, 4000)
    expected = scaled(acc, multiplier, shift, mode="tflite")
    assert np.array_equal(fixed_point.multiply(acc, multiplier, shift), expected)


def test_multiply_wide_has_a_multiplier_of_16_bits():
    x = [3 << 40, -5, (1 << 31) + 1]
    found = fixed_point.multiply_wide(np.array(x), [0x40008000, 0x7FFFFFFF, 1 << 30], [-20, 0, 0])
    reduced = [0x4001, 0x7FFF, 0x4000]
    expected = [
        math.floor(Fraction(v * m, 1 << total) + Fraction(1, 2))
        for v, m, total in zip(x, reduced, (35, 15, 15), strict=True)
    ]
    assert found.tolist() == expected == [1572960, -5, 1 << 30 | 1]


@pytest.mark.parametrize("scale, expected", [
    (0.5, (1 << 30, 0)), (1.0, (1 << 30, 1)), (-0.75, (-3 << 29, 0)), (0.0, (0, 0)),
    (1 - 2**-33, (1 << 30, 1)), (2.0**-40, (0, 0)), (3.0, (3 << 29, 2)),
])
def test_multiplier_of(scale, expected):
    assert fixed_point.multiplier_of(scale) == expected


def test_reciprocal_is_near_the_quotient():
    x = np.unique(np.geomspace(1, 2**31 - 1, 500).astype(np.int64))
    scale, over = fixed_point.reciprocal(x, 12)
    found = scale / 2.0 ** (31 + over.astype(float))
    assert np.abs(found * (x / 2**19) - 1).max() < 1e-8


@pytest.mark.parametrize("name, exact", [
    ("logistic", lambda x: 1 / (1 + math.exp(-x))), ("tanh", math.tanh),
])
def test_sigmoids_are_close_to_floats(name, exact):
    x = np.arange(-15 * 64, 15 * 64 + 1)
    found = getattr(fixed_point, name)(x << 21)  # x / 64 in 27 fractional bits
    expected = np.array([exact(value / 64) for value in x.tolist()])
    assert np.abs(found / 2**31 - expected).max() < 2**-21
    assert found[15 * 64] == round(exact(0) * 2**31)
