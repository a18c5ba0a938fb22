"""One layer: its sums on an accelerator, its finish on the host, and numbers that make no layer."""

import re

import numpy as np
import pytest

from weft.model import Layer

HALF = 1 << 30


def layer(**changes):
    """Two inputs, three outputs, sums kept as they are but for the last output, halved."""
    return Layer(**{
        "name": "layer 1",
        "weights": np.array([[1, 2], [3, -4], [-128, 127]], np.int8),
        "bias": np.array([10, -20, 30], np.int32),
        "multiplier": np.full(3, HALF, np.int32),
        "shift": np.array([1, 1, 0], np.int32),
        "x_zero_point": -3, "y_zero_point": 4, "low": 4, "high": 100,
        "x_scale": 0.5, "y_scale": 2.0,
        "w_scale": np.ones(3, np.float32),
        "float_weights": np.ones((3, 2), np.float32),
        "float_bias": np.array([0, -5, 1], np.float32),
    } | changes)  # fmt: skip


class PlainAccelerator:
    """``matmul`` in numpy, with the operands it had as its record."""

    def matmul(self, a, b, a_zero_point, record):
        sums = (a.astype(np.int32) - a_zero_point) @ b.astype(np.int32)
        return sums, (a, b, a_zero_point)


def test_run_gives_the_output_and_what_was_done():
    x = np.array([[-3, 7], [50, -3]], np.int8)
    y, run = layer().run(x, PlainAccelerator())
    sums = [[20, -40, 1270], [53, 159, -6784]]
    assert run.sums.tolist() == sums
    assert (run.name, run.m, run.k, run.n) == ("layer 1", 2, 2, 3)
    assert run.record[2] == -3
    # 20 + 10 + 4, -60 + 4 clamped, 650 + 4 clamped; 53 + 10 + 4, 139 + 4 clamped, under low
    assert y.dtype == np.int8 and y.tolist() == [[34, 4, 100], [67, 100, 4]]


def test_finish_clamps_to_low_and_high():
    sums = np.array([[-200, 0, 200]], np.int32)
    assert layer(low=-128, high=127).finish(sums).tolist() == [[-128, -16, 119]]
    assert layer(low=-9, high=50).finish(sums).tolist() == [[-9, -9, 50]]


def test_run_float_is_the_layer_before_quantization():
    x = np.array([[1, 2]], np.float32)
    assert layer().run_float(x, relu=False).tolist() == [[3, -2, 4]]
    assert layer().run_float(x, relu=True).tolist() == [[3, 0, 4]]


@pytest.mark.parametrize("changes, error, message", [
    ({"weights": np.zeros(2, np.int8)}, ValueError, "weights must be of shape [N, K], not (2,)"),
    ({"weights": np.zeros((0, 2), np.int8)}, ValueError,
     "weights must be of shape [N, K], not (0, 2)"),
    ({"weights": np.zeros((3, 2), np.uint8)}, TypeError, "weights must be int8, not uint8"),
    ({"bias": np.zeros(2, np.int32)}, ValueError, "bias must be of shape (3,), not (2,)"),
    ({"shift": np.zeros(3, np.int64)}, TypeError, "shift must be int32, not int64"),
    ({"shift": np.full(3, 32, np.int32)}, ValueError, "shift must be in -31..31, not 32"),
    ({"multiplier": np.ones(3, np.int32)}, ValueError,
     "multiplier must be 0 or in 2**30..2**31-1, not 1"),
    ({"x_zero_point": 128}, ValueError, "x_zero_point must be in -128..127, not 128"),
    ({"low": 101}, ValueError, "low must be at most high (100), not 101"),
    ({"y_scale": 0.0}, ValueError, "y_scale must be positive and finite, not 0.0"),
    ({"w_scale": np.array([1, np.inf, 1], np.float32)}, ValueError,
     "w_scale must be finite, not inf"),
    ({"float_bias": np.array([1, np.nan, 1], np.float32)}, ValueError,
     "float_bias must be finite, not nan"),
])  # fmt: skip
def test_rejects_bad_numbers(changes, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        layer(**changes)
