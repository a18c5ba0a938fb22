"""All BF16 operands, decoded, against their values."""

import numpy as np
import pytest
from tiers import quick

from weft.hw.arith.bf16 import Bf16Unpacker, FlushingBf16Unpacker

BITS = np.random.default_rng(1).permutation(1 << 16).astype(np.uint32)  # in any order
with np.errstate(invalid="ignore"):  # signalling NaNs
    VALUES = (BITS << 16).view(np.float32).astype(np.float64)
LEAST = 2.0**-126  # the least normal number


@pytest.fixture(scope="module", params=quick(1, [Bf16Unpacker, FlushingBf16Unpacker]))
def decoder(request):
    return request.param


@pytest.fixture(scope="module")
def operand(decoder, decoded):
    """The fields of `UnpackedBf16` for each of BITS."""
    return decoded(decoder, BITS)


@pytest.fixture(scope="module")
def zero(decoder):
    """Which of BITS are decoded as zeros."""
    return np.abs(VALUES) < LEAST if decoder is FlushingBf16Unpacker else VALUES == 0


def test_sign_of_all(operand):
    assert np.array_equal(operand["sign"], BITS >> 15)


def test_zeros(operand, zero):
    assert np.array_equal(operand["zero"], zero)


def test_infinities_and_nan(operand):
    assert np.array_equal(operand["special"], ~np.isfinite(VALUES))
    assert np.array_equal(operand["nan"], np.isnan(VALUES))


def test_numbers_are_normalized(decoder, operand, zero):
    number = np.isfinite(VALUES) & ~zero
    assert number.sum() == (2 * 254 * 128 if decoder is FlushingBf16Unpacker else 2 * 0x7F7F)
    values = (128 + operand["fraction"]) / 128 * np.exp2(operand["exponent"] - 127.0)
    values = np.where(operand["sign"], -values, values)
    assert np.array_equal(values[number], VALUES[number])
