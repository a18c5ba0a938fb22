"""The rounding of the three modes, against rationals and an independent formulation."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import quick

from weft.golden import scaled

LOW, HIGH = -(1 << 31), (1 << 31) - 1
HALF = 1 << 30  # the multiplier of 0.5
MILLION = 1_000_000

int32s = st.one_of(
    st.integers(LOW, HIGH), st.integers(-300, 300), st.sampled_from([LOW, LOW + 1, HIGH - 1, HIGH]),
    st.builds(
        lambda n, d, s: s * ((1 << n) + d),
        st.integers(0, 30), st.integers(-1, 1), st.sampled_from([-1, 1]),
    ),
)
multipliers = st.one_of(st.just(0), st.just(HALF), st.just(HIGH), st.integers(HALF, HIGH))
shifts = st.integers(-31, 31)
scales = st.one_of(
    st.floats(2.0**-34, 2.0**10, width=32),
    st.integers(-34, 10).map(lambda n: 2.0**n),
    st.floats(0, 2.0**127, width=32, exclude_min=True),
)


# Rationals, in Python numbers only.


def floor(x):
    return x.numerator // x.denominator


def saturated(x):
    return min(max(x, LOW), HIGH)


def by_tflite(acc, multiplier, shift):
    x = (acc * 2**shift - LOW) % 2**32 + LOW if shift > 0 else acc
    v = floor(Fraction(x * multiplier, 2**31) + Fraction(1, 2))
    y = Fraction(v, 2 ** max(-shift, 0))
    return (-1 if y < 0 else 1) * floor(abs(y) + Fraction(1, 2))


def by_single(acc, multiplier, shift):
    y = Fraction(acc * multiplier) * Fraction(2) ** (shift - 31)
    return saturated(floor(y + Fraction(1, 2)))


def even(x):
    """The nearest integer, ties to even."""
    low, rest = floor(x), x - floor(x)
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2))


def binary32(x):
    """``x`` rounded to 24 significant bits, down to 2**-149; without overflow."""
    if not x:
        return x
    exponent = -149
    while abs(x) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    return even(x / Fraction(2) ** exponent) * Fraction(2) ** exponent


def by_onnx(acc, scale):
    return saturated(even(binary32(binary32(Fraction(acc)) * Fraction(scale))))


def scaled_equals_rationals(acc, multiplier, shift):
    assert int(scaled(acc, multiplier, shift)) == by_tflite(acc, multiplier, shift)
    single = scaled(acc, multiplier, shift, mode="single")
    assert int(single) == by_single(acc, multiplier, shift)


def scaled_equals_rationals_in_onnx(acc, scale):
    assert int(scaled(acc, scale=np.float32(scale), mode="onnx")) == by_onnx(acc, scale)


@pytest.mark.parametrize("examples", quick(1, [300, 1000]))
@pytest.mark.parametrize("check, scale", [
    (scaled_equals_rationals, {"multiplier": multipliers, "shift": shifts}),
    (scaled_equals_rationals_in_onnx, {"scale": scales}),
], ids=["integers", "onnx"])
def test_equals_rationals(check, scale, examples):
    tried = given(acc=int32s, **scale)(check)
    settings(max_examples=examples, deadline=None, derandomize=True)(tried)()


# Many values: floating point with 64 significant bits, where each step is exact, without shifts.

wide = np.longdouble
needs_wide = pytest.mark.skipif(
    np.finfo(wide).nmant < 63, reason="numpy's long double has under 64 significant bits here"
)


def in_bulk_tflite(acc, multiplier, shift):
    x = wide(acc) * wide(2.0) ** np.maximum(shift, 0)
    x = np.mod(x - LOW, wide(2.0**32)) + LOW
    v = np.floor(x * multiplier / wide(2.0**31) + wide(0.5))
    y = v / wide(2.0) ** np.maximum(-shift, 0)
    return np.trunc(y + np.copysign(wide(0.5), y))


def in_bulk_single(acc, multiplier, shift):
    y = wide(acc) * multiplier * wide(2.0) ** (shift - 31)
    return np.clip(np.floor(y + wide(0.5)), LOW, HIGH)


def in_bulk_onnx(acc, scale):
    def rounded(x):
        fraction, exponent = np.frexp(x)
        return np.ldexp(np.rint(np.ldexp(fraction, 24)), exponent - 24)

    return np.clip(np.rint(rounded(rounded(np.float64(acc)) * np.float64(scale))), LOW, HIGH)


@needs_wide
@pytest.mark.parametrize("mode", quick(1, ["tflite", "single"]))
def test_a_million_triples(mode, triples):
    acc, multiplier, shift = triples(np.random.default_rng(1), MILLION)
    result = scaled(acc, multiplier, shift, mode=mode)
    expected = {"tflite": in_bulk_tflite, "single": in_bulk_single}[mode](acc, multiplier, shift)
    assert result.dtype == np.int32
    assert np.array_equal(result, expected)
    # The sample is useful: the modes differ, and it has many 8-bit results.
    other = {"tflite": "single", "single": "tflite"}[mode]
    assert np.mean(result != scaled(acc, multiplier, shift, mode=other)) > 0.01
    assert np.mean(np.abs(expected) < 200) > 0.2


def test_a_million_triples_in_onnx(sums):
    rng = np.random.default_rng(2)
    scale = np.exp2(rng.uniform(-34, 8, MILLION))
    scale = np.where(rng.random(MILLION) < 0.3, np.exp2(np.rint(np.log2(scale))), scale)
    scale = scale.astype(np.float32)
    acc = sums(rng, scale.astype(np.float64))
    result = scaled(acc, scale=scale, mode="onnx")
    assert result.dtype == np.int32
    assert np.array_equal(result, in_bulk_onnx(acc, scale))
    # A model without the rounding to 24 bits gives other results.
    exact = np.clip(np.rint(acc * scale.astype(np.float64)), -128, 127)
    assert np.any(exact != np.clip(result, -128, 127))


@pytest.mark.parametrize("shift", range(-31, 1))
def test_exact_ties(shift):
    """Ties of all sizes and signs: away from zero, up, and to even."""
    odd = np.array([n for n in range(-301, 302, 2) if LOW <= n * 2**-shift <= HIGH])
    acc = odd * 2**-shift  # times 2**(shift - 1): odd / 2
    away = [by_tflite(int(n), HALF, shift) for n in acc]
    if shift:
        assert away == [n // 2 + (n > 0) for n in odd]
    assert np.array_equal(scaled(acc, HALF, shift), away)
    assert np.array_equal(scaled(acc, HALF, shift, mode="single"), odd // 2 + 1)
    to_even = scaled(acc, scale=np.float32(2.0 ** (shift - 1)), mode="onnx")
    assert np.array_equal(to_even, [even(Fraction(int(n), 2)) for n in odd])
