"""Pools and means that a damaged program file asks for; `tests/models/tflite` has the results."""

import numpy as np
import pytest
from rejects import rejects

from weft.models.kernels import KERNELS


@pytest.mark.parametrize("x", [np.zeros((1, 2, 2, 1), np.int8), np.zeros((1, 2, 2, 1), np.float32)])
def test_a_window_without_an_input_is_an_error(x):
    attributes = {
        "kernel_size": (1, 1), "stride": (1, 1), "padding": (3, 0), "output": (1, 1),
        "low": -128, "high": 127,
    }
    with pytest.raises(ValueError, match="each window of a pool must have an input"):
        KERNELS["tflite.average_pool"]([x], attributes)


def test_a_window_beyond_the_limit_is_an_error():
    attributes = {
        "kernel_size": (1 << 40, 1), "stride": (1, 1), "padding": (0, 0), "output": (1, 1),
        "low": -128, "high": 127,
    }
    text = "a pool must have at most 256 rows and columns, not 1099511627776, 1"
    with rejects(ValueError, text):
        KERNELS["tflite.max_pool"]([np.zeros((1, 2, 2, 1), np.int8)], attributes)


def test_a_mean_of_nothing_is_an_error():
    attributes = {"axes": (1,), "shape": (1,), "zeros": (0, 0), "multiplier": 1, "shift": 0}
    with pytest.raises(ValueError, match="a mean must be of 1 value or more, not 0"):
        KERNELS["tflite.mean"]([np.zeros((1, 0), np.int8)], attributes)
