"""Values of 16 bits of the golden model: numbers computed by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from weft.golden.network_core.digits import (
    DIGITS,
    check_digits,
    joined,
    split_values,
    split_words,
)


def test_the_digits_of_a_sum():
    """The last column of each sum has it, modulo 2^32; the others stay."""
    t = np.int32([[1, -2, 3, 4], [1 << 24, 5, 1 << 7, 1 << 23]])
    assert joined(t, 2).tolist() == [[1, 254, 3, 772], [1 << 24, 5, 1 << 7, (1 << 23) + (1 << 15)]]
    assert joined(t, 4).tolist() == [
        [1, -2, 3, (1 << 24) - (2 << 16) + 772], [1 << 24, 5, 1 << 7, (5 << 16) + 8421376],
    ]
    assert joined(np.int32([[-128, 0, 0, -1]]), 4)[0, 3] == (1 << 31) - 1


def test_the_bytes_of_values():
    values = np.array([[0, 1, -1, 127], [32767, 40000, -32768, -(1 << 31)]])
    assert split_values(values, -(1 << 15), (1 << 15) - 1).tolist() == [
        [0, -128, 0, -127, -1, 127, 0, -1], [127, 127, 127, 127, -128, -128, -128, -128],
    ]
    assert split_values(values, -1, 129).tolist() == [
        [0, -128, 0, -127, -1, 127, 0, -1], [0, 1, 0, 1, -1, 127, -1, 127],
    ]


def test_the_bytes_of_words():
    values = np.array([[0, -1], [5, 0x01020384], [-(1 << 31), (1 << 31) - 1]])
    assert split_words(values[::2]).tolist() == [
        [0, -128, -128, -128, -1, 127, 127, 127], [-128, -128, -128, -128, 127, 127, 127, 127],
    ]
    assert split_words(values[1:2, 1:]).tolist() == [[1, -126, -125, 4]]


@pytest.mark.parametrize("fields, rule", [
    ({"pairs": 1, "columns": 3}, "columns must be a multiple of 2 with pairs, not 3"),
    ({"quads": 1, "columns": 6}, "columns must be a multiple of 4 with quads, not 6"),
    ({"pairs": 1, "zero": 4}, "zero must be 0 with pairs, not 4"),
    ({"pairs": 1, "low": 0}, "low must be -128 with pairs, not 0"),
    ({"pairs": 1, "high": 1}, "high must be 127 with pairs, not 1"),
    ({"words": 1, "high": 1}, "high must be 127 with words, not 1"),
    ({"quad_pairs": 1, "columns": 10}, "columns must be a multiple of 4 with quad_pairs, not 10"),
    ({"quad_pairs": 1, "pair_low": 6}, r"pair_low must be at most pair_high \(5\), not 6"),
    ({"pairs": 1, "pair_low": 6}, r"pair_low must be at most pair_high \(5\), not 6"),
])
def test_fields_that_the_hardware_does_not_check(fields, rule):
    job = dict.fromkeys(DIGITS, 0) | {
        "columns": 8, "zero": 0, "low": -128, "high": 127, "pair_low": 5, "pair_high": 5,
    }
    check_digits(SimpleNamespace(**job))
    with pytest.raises(ValueError, match=f"^{rule}$"):
        check_digits(SimpleNamespace(**job | fields))
