"""The golden matrix product against sums of Python integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import integers
from rejects import rejects

from weft.golden import matmul


def wrapped(value, bits=32):
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def by_hand(a, b, p=None, q=None, start=0, bits=32):
    rows, depth, cols = len(a), len(b), len(b[0])
    p, q = p or [0] * rows, q or [0] * cols
    return [
        [
            wrapped(
                start + sum((a[i][k] - p[i]) * (b[k][j] - q[j]) for k in range(depth)), bits
            )
            for j in range(cols)
        ]
        for i in range(rows)
    ]


@settings(derandomize=True, deadline=None)
@given(
    m=st.integers(1, 7), n=st.integers(1, 7), k=st.integers(1, 20), seed=st.integers(0, 2**32),
    types=st.tuples(*[st.sampled_from([np.int8, np.uint8])] * 2), start=st.integers(-9, 9),
)
def test_sums_exactly(m, n, k, seed, types, start):
    rng = np.random.default_rng(seed)
    a, b = integers(rng, types[0], m, k), integers(rng, types[1], k, n)
    p, q = integers(rng, types[0], m), integers(rng, types[1], n)
    result = matmul(a, b, a_zero_point=p, b_zero_point=q, start=np.full((m, n), start))
    assert result.dtype == np.int32
    assert result.tolist() == by_hand(*(x.tolist() for x in (a, b, p, q)), start)


def test_accepts_a_scalar_zero_point():
    a, b = np.array([[1, 2], [3, 4]], np.uint8), np.array([[5, 6], [7, 8]], np.int8)
    result = matmul(a, b, a_zero_point=200, b_zero_point=-100)
    assert result.tolist() == by_hand(a.tolist(), b.tolist(), [200, 200], [-100, -100])


@pytest.mark.parametrize("k", [1024, 131_071, 131_072, 131_073])
def test_wraps_at_32_bits(k):
    a, b = np.full((1, k), -128, np.int8), np.full((k, 1), -128, np.int8)
    assert matmul(a, b).tolist() == [[wrapped(16384 * k)]]


@pytest.mark.parametrize("bits", [8, 16, 33, 64])
def test_wraps_at_any_width(bits):
    a, b = np.full((2, 50), 127, np.int8), np.full((50, 3), -128, np.int8)
    assert matmul(a, b, bits=bits).tolist() == [[wrapped(-50 * 127 * 128, bits)] * 3] * 2


def test_is_exact_beyond_float64():
    a, b = np.full((1, 3), -32768, np.int16), np.full((3, 1), 32767, np.int16)
    huge = 2**31 - 1
    result = matmul(a, b, a_zero_point=huge, b_zero_point=-huge, bits=64)
    assert result.tolist() == [[wrapped(3 * (-32768 - huge) * (32767 + huge), 64)]]


@pytest.mark.parametrize(
    "shapes",
    [
        ((5,), (5,)), ((5,), (5, 2)), ((3, 5), (5,)), ((2, 1, 3, 5), (4, 5, 2)), ((3, 0), (0, 2)),
    ],
)
def test_accepts_the_shapes_of_numpy(shapes):
    rng = np.random.default_rng(0)
    a, b = (integers(rng, np.int8, *shape) for shape in shapes)
    want = np.matmul(a.astype(np.int64), b.astype(np.int64))
    result = matmul(a, b)
    assert result.shape == want.shape
    assert (result == want).all()


def test_ignores_the_flags_that_a_library_sets_on_unused_lanes(monkeypatch):
    product = np.matmul

    def sets_a_flag(a, b):
        assert np.isnan(np.float32(np.inf) - np.float32(np.inf))
        return product(a, b)

    monkeypatch.setattr(np, "matmul", sets_a_flag)
    assert matmul(np.full((2, 5), 3, np.int8), np.full((5, 1), 4, np.int8)).tolist() == [[60]] * 2


def test_rejects_floats():
    with rejects(TypeError, "golden operands must be integers of at most 16 bits, not float64"):
        matmul(np.zeros((2, 2)), np.zeros((2, 2), np.int8))
