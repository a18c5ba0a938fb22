"""Random operands of the benches: each kind has the numbers that its name says."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

from weft.config import Config
from weft.sim.numbers import KINDS, Floats, Integers, numbers

SHAPE = 400, 5


def bits(kind, seed=1):
    found = Floats(flush=False).random(np.random.default_rng(seed), *SHAPE, kind)
    assert found.dtype == bfloat16 and found.shape == SHAPE
    return found.view(np.uint16)


def exponents(found):
    return found >> 7 & 0xFF


def test_the_operands_of_a_config():
    assert isinstance(numbers(Config()), Integers)
    assert not numbers(Config(dtype="bf16")).flush
    assert numbers(Config(dtype="bf16", flush_subnormals=True)).flush


@pytest.mark.parametrize("kind", KINDS)
def test_signs_and_fractions_are_random(kind):
    found = bits(kind)
    assert 0.4 < (found >> 15).mean() < 0.6
    assert len(np.unique(found & 0x7F)) == 128


def test_wide_numbers_have_all_finite_exponents():
    assert set(np.unique(exponents(bits("wide")))) == set(range(255))


def test_products_of_subnormal_numbers_are_often_subnormal():
    found = bits("subnormal")
    assert 0.1 < (exponents(found) == 0).mean() < 0.5
    one, other = found.view(bfloat16), bits("subnormal", 2).view(bfloat16)
    product = np.abs(one.astype(np.float64) * other.astype(np.float64))
    assert ((product > 2**-149) & (product < 2**-126)).mean() > 0.1


def test_special_numbers_leave_most_sums_finite():
    found = bits("special")
    special = exponents(found) == 255
    nan = special & (found & 0x7F != 0)
    assert 0.05 < special.mean() < 0.2
    assert len(np.unique(found[nan])) > 50  # payloads, quiet and signalling
    for one in (0x7F80, 0xFF80, 0x0000, 0x8000, 0x7F7F, 0x0001, 0x0080):
        assert (found == one).any(), hex(one)
    assert 0.3 < special.any(axis=1).mean() < 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_initial_sums_have_random_lower_bits(kind):
    found = Floats(flush=False).random_sums(np.random.default_rng(1), *SHAPE, kind)
    assert found.dtype == np.float32 and found.shape == SHAPE
    assert len(np.unique(found.view(np.uint32) & 0xFFFF)) > 1000


def test_a_product_adds_its_initial_sums():
    one = np.ones((2, 3), bfloat16)
    start = np.full((2, 2), 0.5, np.float32)
    assert (Floats(flush=False).product(one, one, start) == 3.5).all()
    start = np.full((2, 2), 1 << 31, np.int64)
    assert (Integers().product(one.astype(np.int8), one.astype(np.int8), start) < 0).all()
