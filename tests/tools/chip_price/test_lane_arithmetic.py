"""ADD and average pools of the lanes equal TensorFlow Lite Micro for all operands."""

import numpy as np
import pytest

from tools.chip_price.lane_arithmetic import add, average
from weft.network.kernels import run

# The three ADD of resnet8: two scales and zero points each.
ADDS = [
    {
        "zeros": zeros, "multipliers": multipliers, "shifts": (-2, 0), "left_shift": 20,
        "multiplier": multiplier, "shift": shift, "zero": -128, "low": -128, "high": 127,
    }
    for zeros, multipliers, multiplier, shift in [
        ((-128, 4), (1623821475, 1073741824), 1098017566, -17),
        ((-17, 4), (1699529983, 1073741824), 1140768826, -17),
        ((38, -2), (1657902019, 1073741824), 1835721671, -18),
    ]
]


@pytest.mark.parametrize("attributes", ADDS)
def test_add_equals_the_kernel(attributes):
    x, y = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    x, y = x.astype(np.int8), y.astype(np.int8)
    (expected,) = run("tflite.add", [x, y], attributes)
    assert np.array_equal(add(x, y, attributes), expected)


def differences(count, **options):
    """Number of sums whose average differs from the one of integers, ties away from 0."""
    sums = np.arange(-128 * count, 127 * count + 1)
    expected = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    return int(np.count_nonzero(average(sums, count, **options) != expected))


@pytest.mark.parametrize("count", [9, 16, 25, 36, 49, 64, 125])
def test_average_is_exact(count):
    assert differences(count) == 0


def test_average_with_weight_1_rounds_twice():
    assert differences(125, weight=1) == 255


def test_single_rounding_differs_where_ties_exist():
    assert differences(125, mode="single") == 0
    assert differences(64, mode="single") == 128
