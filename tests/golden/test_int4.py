"""Weights of int4 against Python's integers."""

import numpy as np
import pytest

from weft.golden.int4 import scales_of, unpack


def test_a_weight_is_its_code_times_the_scale_of_its_group():
    rng = np.random.default_rng(1)
    codes = rng.integers(-8, 8, (3, 37)).astype(np.int8)
    scales = rng.integers(0, 16, (3, 3)).astype(np.uint8)
    found = unpack(codes, scales)
    assert found.dtype == np.int8
    for row in range(3):
        for place in range(37):
            assert int(found[row, place]) == int(codes[row, place]) * int(scales[row, place // 16])


@pytest.mark.parametrize("outputs", [1, 700])
def test_scales_give_the_weights_back(outputs):
    """With the smallest scale; also of zeros, and of a last group that is not whole."""
    rng = np.random.default_rng(2)
    codes = rng.integers(-8, 8, (outputs, 24)).astype(np.int8)
    codes[:, :2] = -8, 7  # so that no smaller scale has such codes
    codes[0, 16:] = 0
    scales = rng.integers(1, 16, (outputs, 2)).astype(np.uint8)
    weights = unpack(codes, scales)
    found = scales_of(weights)
    np.testing.assert_array_equal(found[:, 0], scales[:, 0])
    assert found[0, 1] == 1
    np.testing.assert_array_equal(unpack(weights // found.repeat(16, 1)[:, :24].astype(np.int8),
                                         found), weights)


@pytest.mark.parametrize("group", [
    [127],  # 16 times a prime, or a prime: no scale of 1 to 15
    [-128], [120, 1], [8], [-120, 7], [105, 60, 1],
])
def test_other_weights_have_no_scales(group):
    weights = np.zeros((600, 32), np.int8)
    weights[599, 16 : 16 + len(group)] = group
    expected = any(
        all(w % m == 0 and -8 <= w // m <= 7 for w in group) for m in range(1, 16)
    )
    assert (scales_of(weights) is not None) == expected
