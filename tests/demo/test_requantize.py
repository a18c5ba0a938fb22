"""Host requantization, compared with rationals and with values computed by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rejects import rejects

from weft.demo import add_bias, requantize, scale

HALF = 1 << 30  # multiplier of 0.5
TOP = (1 << 31) - 1
LOW, HIGH = -(1 << 31), (1 << 31) - 1

int32s = st.one_of(
    st.integers(LOW, HIGH),
    st.integers(-300, 300),
    st.sampled_from([LOW, LOW + 1, HIGH - 1, HIGH]),
    st.builds(
        lambda n, d, s: s * ((1 << n) + d),
        st.integers(0, 30),
        st.integers(-1, 1),
        st.sampled_from([-1, 1]),
    ),
)
multipliers = st.one_of(st.just(0), st.just(HALF), st.just(TOP), st.integers(HALF, TOP))
shifts = st.integers(-31, 31)


def wrapped(x):
    """``x`` as the int32 with its low 32 bits."""
    x %= 1 << 32
    return x - (1 << 32) if x >> 31 else x


def reference(acc, multiplier, shift):
    """Mode tflite in rationals: no numpy, no shifts, no masks."""
    x = wrapped(acc * 2**shift) if shift > 0 else acc
    # To the nearest, ties up.
    v = (Fraction(x * multiplier, 2**31) + Fraction(1, 2)).__floor__()
    # To the nearest, ties away from zero.
    y = Fraction(v, 2 ** max(-shift, 0))
    sign = -1 if y < 0 else 1
    return sign * (abs(y) + Fraction(1, 2)).__floor__()


@settings(max_examples=1000, deadline=None)
@given(acc=int32s, multiplier=multipliers, shift=shifts)
def test_scale_equals_rationals(acc, multiplier, shift):
    assert int(scale(acc, multiplier, shift)) == reference(acc, multiplier, shift)


def test_scale_equals_rationals_in_bulk():
    rng = np.random.default_rng(2)
    acc = rng.integers(LOW, HIGH, (200, 64), endpoint=True).astype(np.int32)
    acc >>= rng.integers(0, 32, acc.shape).astype(np.int32)
    multiplier = rng.integers(HALF, TOP, 64, endpoint=True)
    shift = np.resize(np.arange(-31, 32), 64)
    expected = [
        [reference(int(a), int(m), int(s)) for a, m, s in zip(row, multiplier, shift, strict=True)]
        for row in acc
    ]
    result = scale(acc, multiplier, shift)
    assert result.dtype == np.int32
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("acc, multiplier, shift, expected", [
    (1 << 29, HALF, 6, 0),            # scaled by 32: shifted by 6 it wraps to 0
    (1 << 29, HALF, 1, 1 << 29),
    (1 << 30, HALF, 1, -(1 << 30)),   # 2**31 wraps to -2**31
    (-(1 << 30), HALF, 1, -(1 << 30)),
    (1, HALF, 31, -(1 << 30)),
    (2, HALF, 31, 0),
    (-1, HALF, 31, -(1 << 30)),
    (3, HALF, 30, -(1 << 29)),        # 3 * 2**30 wraps to -2**30
    (HIGH, 0, 31, 0),
    (LOW, 0, 0, 0),
    (LOW, 0, -31, 0),
    (1, HALF, 0, 1),                  # 0.5: the first rounding takes ties up
    (-1, HALF, 0, 0),                 # -0.5
    (-3, HALF, 0, -1),                # -1.5
    (3, HALF, 0, 2),                  # 1.5
    (1, TOP, -1, 1),                  # the second one takes them away from zero: 0.5
    (-1, TOP, -1, -1),                # -0.5
    (-2, HALF, -1, -1),               # -0.5 after an exact first rounding
    (2, HALF, -1, 1),
    (-6, HALF, -1, -2),               # -1.5
    (6, HALF, -1, 2),
    (-10, HALF, -1, -3),              # -2.5
    (-1, HALF, -1, 0),                # -0.25: -0.5 goes up to 0
    (1, HALF, -1, 1),                 # 0.25: 0.5 up to 1, 0.5 away to 1, the double rounding
    (-4, HALF, -2, -1),               # -0.5
    (-3, HALF, -2, 0),                # -0.375: -1.5 up to -1, then -0.25
    (HIGH, TOP, 0, HIGH - 1),
    (LOW, TOP, 0, LOW + 1),
    (LOW, HALF, 0, -(1 << 30)),
    (HIGH, HALF, 0, 1 << 30),
    (HIGH, TOP, -31, 1),              # just under 1
    (LOW, TOP, -31, -1),
    (1 << 30, TOP, -31, 1),           # v is 2**30: a tie at 0.5
    (-(1 << 30), TOP, -31, 0),        # v is -2**30 + 1: the first rounding's tie goes up
    (-(1 << 30) - 1, TOP, -31, -1),   # v is -2**30: a tie at -0.5
    ((1 << 30) - 1, TOP, -31, 0),
    (-(1 << 30) + 1, TOP, -31, 0),
    (HIGH, HALF, -31, 1),             # v is 2**30, by the first rounding
    (LOW, HALF, -31, -1),
    (LOW + 1, HALF, -31, 0),          # v is -2**30 + 1
    (0, TOP, 31, 0),
    (0, HALF, -31, 0),
])  # fmt: skip
def test_scale_by_hand(acc, multiplier, shift, expected):
    assert int(scale(acc, multiplier, shift)) == expected
    assert reference(acc, multiplier, shift) == expected


def test_scale_takes_one_number_per_column():
    acc = np.array([[8, 8, 8], [-8, -8, -8]], np.int32)
    result = scale(acc, np.array([HALF, HALF, 0]), np.array([0, 1, 0]))
    assert result.tolist() == [[4, 8, 0], [-4, -8, 0]]
    assert scale(acc, HALF, -1).tolist() == [[2, 2, 2], [-2, -2, -2]]


def test_requantize_adds_the_zero_point_then_clamps():
    acc = np.array([-1000, -20, 0, 20, 1000], np.int32)
    result = requantize(acc, HALF, 0, zero_point=5, low=-3, high=100)
    assert result.dtype == np.int8
    assert result.tolist() == [-3, -3, 5, 15, 100]


def test_requantize_reaches_all_of_int8_and_saturates():
    acc = np.arange(-400, 400, dtype=np.int32)
    result = requantize(acc, HALF, 1)
    assert result.tolist() == [min(max(a, -128), 127) for a in acc.tolist()]


def test_requantize_does_not_wrap_at_the_zero_point():
    assert requantize(np.array([HIGH, LOW], np.int32), TOP, 0, zero_point=127).tolist() == [
        127,
        -128,
    ]


def test_add_bias_wraps():
    sums = np.array([[HIGH, LOW, 5], [0, 0, -5]], np.int32)
    result = add_bias(sums, np.array([1, -1, 2], np.int32))
    assert result.dtype == np.int32
    assert result.tolist() == [[LOW, HIGH, 7], [1, -1, -3]]


@pytest.mark.parametrize("arguments, error, message", [
    ((np.zeros(2), HALF, 0), TypeError, "acc must be integers, not float64"),
    ((0, 0.5, 0), TypeError, "multiplier must be integers, not float64"),
    ((0, HALF, 0.0), TypeError, "shift must be integers, not float64"),
    ((HIGH + 1, HALF, 0), ValueError, "acc must be in -2**31..2**31-1, not 2147483648"),
    ((0, HALF - 1, 0), ValueError, "multiplier must be 0 or in 2**30..2**31-1, not 1073741823"),
    ((0, TOP + 1, 0), ValueError, "multiplier must be 0 or in 2**30..2**31-1, not 2147483648"),
    ((0, -HALF, 0), ValueError, "multiplier must be 0 or in 2**30..2**31-1, not -1073741824"),
    ((0, np.uint64(2**63), 0), ValueError,
     "multiplier must be under 2**63, not 9223372036854775808"),
    ((0, HALF, 32), ValueError, "shift must be in -31..31, not 32"),
    ((0, HALF, -32), ValueError, "shift must be in -31..31, not -32"),
    (([[1, 2]], [HALF] * 3, 0), ValueError,
     "multiplier must be a scalar or of shape (2,), not (3,)"),
    (([[1, 2]], HALF, [[0, 0]]), ValueError, "shift must be a scalar or of shape (2,), not (1, 2)"),
])  # fmt: skip
def test_rejects_wrong_scales(arguments, error, message):
    with rejects(error, message):
        scale(*arguments)


@pytest.mark.parametrize("options, error, message", [
    ({"zero_point": 128}, ValueError, "zero_point must be in -128..127, not 128"),
    ({"zero_point": [1, 2]}, ValueError, "zero_point must be a scalar, not of shape (2,)"),
    ({"low": -129}, ValueError, "low must be in -128..127, not -129"),
    ({"high": 1.5}, TypeError, "high must be integers, not float64"),
    ({"low": 3, "high": 2}, ValueError, "low must be at most high (2), not 3"),
])  # fmt: skip
def test_rejects_wrong_limits(options, error, message):
    with rejects(error, message):
        requantize(0, HALF, 0, **options)


def test_rejects_a_bias_of_another_width():
    with rejects(ValueError, "bias must be a scalar or of shape (3,), not (4,)"):
        add_bias(np.zeros((4, 3), np.int32), np.zeros(4, np.int32))
