"""The operations on integers, against real functions and Python's integers."""

import numpy as np
import pytest

from weft.golden.language import operations
from weft.golden.language.operations import (
    exponential,
    leading_one,
    look_up,
    reciprocal,
    rms_norm,
    rotate,
    rsqrt_table,
    saturate,
    scale,
    silu_table,
)


def test_scale_rounds_half_up_and_saturates():
    rng = np.random.default_rng(1)
    v = rng.integers(-(1 << 31), 1 << 31, 2000)
    m = rng.integers(-65535, 65536, 2000)
    shift = rng.integers(1, 48, 2000)
    for bits in (8, 16):
        top = (1 << (bits - 1)) - 1
        expected = [
            max(-top - 1, min(top, (int(a) * int(b) + (1 << int(s) >> 1)) // (1 << int(s))))
            for a, b, s in zip(v, m, shift, strict=True)
        ]
        assert scale(v, m, shift, bits).tolist() == expected
    assert scale([3, -3, 5, -5], 1, 1).tolist() == [2, -1, 3, -2]


def test_saturate_has_the_range_of_twos_complement():
    assert saturate(np.array([-129, -128, 127, 128]), 8).tolist() == [-128, -128, 127, 127]


def test_leading_one_of_each_width():
    values = [v for k in range(48) for v in (1 << k, (2 << k) - 1)]
    assert leading_one(values).tolist() == [v.bit_length() - 1 for v in values]


def test_look_up_interpolates_between_bases():
    table = operations.Table(np.arange(512) * 1000, np.full(512, 1000, np.int16))
    u = np.arange(1 << 16)
    assert np.abs(look_up(table, u) - u * 1000 / 128).max() <= 0.5


def test_exponential_of_all_arguments():
    u = np.arange(1 << 16)
    error = np.abs(exponential(u) - 32768 * np.exp(-u / 4096))
    assert 4 < error.max() <= 5.5  # the bound of the docstring is not idle
    assert exponential(0) == 32767
    assert exponential([65535, 65536, 1 << 31]).tolist() == [0, 0, 0]
    assert (np.diff(exponential(u)) <= 0).all()
    assert exponential(u[:4096], 4).tolist() == exponential(u[:4096] * 16).tolist()


def test_reciprocal_of_all_sizes():
    rng = np.random.default_rng(2)
    large = rng.integers(1 << 31, 1 << 32, 20000) >> rng.integers(0, 32, 20000)
    v = np.concatenate([np.arange(1, 70000), large])
    m, e = reciprocal(v)
    assert np.abs(m * 2.0**-e * v - 1).max() <= 6e-5
    assert m.min() >= 32768 and m.max() <= 65535


@pytest.mark.parametrize("dim", [1, 3, 48, 64, 100, 128, 288, 2048])
def test_rms_norm_is_close_to_the_root_mean_square(dim):
    rng = np.random.default_rng(dim)
    table, r = rsqrt_table(dim)
    size = rng.integers(1, 1 << 15, (200, 1))
    x = rng.integers(-size, size, (200, dim))
    squares = (x * x).sum(-1, keepdims=True) + 64
    bits = min(14 - r + 3, 14)  # 64 is 2**6
    shift = 15 - r - bits
    y = rms_norm(x, squares, table, shift)
    exact = x * np.sqrt(dim / squares) * 2.0**bits
    fits = np.abs(exact) < 32760
    assert fits.any()
    assert (np.abs(y - exact)[fits] <= 0.5 + 1e-4 * np.abs(exact[fits])).all()
    assert (np.abs(y)[~fits] >= 32750).all()


def test_the_multiplier_of_a_norm_has_its_error():
    table, r = rsqrt_table(200)
    for k in (20, 21):  # both halves of the table
        squares = np.arange(1 << k, 2 << k, 37)[:, None]
        big = 15 - r - 16
        y = rms_norm(np.full_like(squares, 30000), squares, table, big)
        exact = 30000 * np.sqrt(200 / squares) * 2.0**16
        fits = exact < 32760
        assert np.abs(y / exact - 1)[fits].max(initial=0) <= 1e-4 + 0.5 / exact[fits].min(initial=1)


@pytest.mark.parametrize("bits", [3, 8, 11, 13])
def test_silu_of_all_arguments(bits):
    x = np.arange(-32768, 32768)
    y = look_up(silu_table(bits), x + 32768)
    real = x / 2.0**bits
    exact = x / (1 + np.exp(-np.clip(real, -700, None)))
    assert np.abs(y - exact).max() <= 1 + 2.0 ** (10 - bits)


def test_rotate_turns_pairs_of_neighbours():
    rng = np.random.default_rng(3)
    x = rng.integers(-23000, 23000, (50, 8))
    angle = rng.uniform(0, 7, (50, 4))
    cos, sin = (np.minimum(np.rint(f(angle) * 32768), 32767).astype(int) for f in (np.cos, np.sin))
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
    y = rotate(x, cos, sin)
    # The rounded cosine and sine add up to 0.7 each, and 1 is 32,767.
    assert np.abs(y[:, 0::2] - turned.real).max() <= 2.1
    assert np.abs(y[:, 1::2] - turned.imag).max() <= 2.1
    assert rotate(np.array([[-32768, 32767]]), np.array([[0]]), np.array([[32767]]))[0, 1] == -32767
