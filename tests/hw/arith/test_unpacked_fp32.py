"""Decoded start values: every exponent with fractions of all kinds, against their values."""

import numpy as np
import pytest

from weft.hw.arith.bf16 import FlushingFp32Unpacker, Fp32Unpacker

RNG = np.random.default_rng(1)
FRACTIONS = np.concatenate([
    [0, 0x7FFFFF], 1 << np.arange(23), 0x7FFFFF ^ 1 << np.arange(23), RNG.integers(0, 1 << 23, 16),
])
# The sign and the exponent, the fraction; in any order.
BITS = RNG.permutation((np.arange(512)[:, None] << 23 | FRACTIONS).reshape(-1)).astype(np.uint32)
with np.errstate(invalid="ignore"):  # signalling NaNs
    VALUES = BITS.view(np.float32).astype(np.float64)
LEAST = 2.0**-126  # the least normal number


@pytest.fixture(scope="module", params=[Fp32Unpacker, FlushingFp32Unpacker])
def decoder(request):
    return request.param


@pytest.fixture(scope="module")
def start(decoder, decoded):
    """The fields of `UnpackedFp32` for each of BITS."""
    return decoded(decoder, BITS)


def test_sign_of_all(start):
    assert np.array_equal(start["sign"], BITS >> 31)


def test_infinities_and_nan(start):
    assert np.array_equal(start["special"], ~np.isfinite(VALUES))
    assert np.array_equal(start["nan"], np.isnan(VALUES))


def test_numbers(decoder, start):
    """A normal number has a hidden bit; the exponent 0 means 1 without it: IEEE 754, 3.4."""
    exponent, number = start["exponent"], np.isfinite(VALUES)
    hidden = np.where(exponent > 0, 1 << 23, 0)
    size = np.ldexp((hidden + start["fraction"]).astype(float), np.maximum(exponent, 1) - 150)
    flushed = (np.abs(VALUES) < LEAST) & (decoder is FlushingFp32Unpacker)
    expected = np.where(flushed, 0, np.abs(VALUES))
    assert np.count_nonzero(flushed) > 0 or decoder is Fp32Unpacker
    assert np.array_equal(size[number], expected[number])
