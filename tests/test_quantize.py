"""Scales and tables against rationals, and invalid scales. tests/golden has the runtimes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rejects import rejects

from weft.quantize import (
    activation_table,
    gelu,
    hard_swish,
    leaky_relu,
    onnx_scale,
    quantize_multiplier,
    sigmoid,
    tanh,
    tflite_scale,
)

HALF, TOP = 1 << 30, (1 << 31) - 1
F32 = np.float32


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(scale=st.floats(2.0**-32, 2.0**31 - 1))
def test_multiplier_is_the_nearest(scale):
    multiplier, shift = (int(x) for x in quantize_multiplier(scale))
    assert HALF <= multiplier <= TOP and -31 <= shift <= 31
    exact = Fraction(scale) * Fraction(2) ** (31 - shift)
    assert -Fraction(1, 2) <= exact - multiplier < Fraction(1, 2)


@pytest.mark.parametrize("scale, multiplier, shift", [
    (1, HALF, 1), (0.5, HALF, 0), (0.75, 3 << 29, 0), (32, HALF, 6), (2.0**30, HALF, 31),
    (1 - 2.0**-31, TOP, 0),
    (1 - 2.0**-32, HALF, 1),           # a tie, up: the carry
    (1 - 2.0**-33, HALF, 1),
    (0.5 + 2.0**-32, HALF + 1, 0),     # a tie, up
    (2.0**-32, HALF, -31),             # the smallest
    (2.0**-32 - 2.0**-64, HALF, -31),  # with the carry
    (2.0**-32 - 2.0**-63, 0, 0),       # flushed
    (1e-300, 0, 0),
    (2.0**31 - 1, TOP, 31),
])
def test_multiplier_by_hand(scale, multiplier, shift):
    result = quantize_multiplier(scale)
    assert result == (multiplier, shift)
    assert [x.dtype for x in result] == [np.int32, np.int32]


def test_multipliers_of_channels():
    multiplier, shift = quantize_multiplier(np.array([1, 0.25, 3e-20]))
    assert multiplier.tolist() == [HALF, HALF, 0]
    assert shift.tolist() == [1, -1, 0]


def test_products_are_computed_like_the_runtime():
    x, w, y = F32(0.1), F32(0.3), F32(0.7)
    wide = quantize_multiplier(float(x) * float(w) / float(y))
    narrow = quantize_multiplier(float(x * w) / float(y))
    assert wide != narrow
    assert tflite_scale(x, w, y) == tflite_scale(0.1, [0.3], 0.7) == wide
    assert tflite_scale(x, w, y, product="float64") == wide
    assert tflite_scale(x, w, y, product="float32") == narrow
    multiplier, shift = tflite_scale(x, [w, w], y)
    assert (multiplier.tolist(), shift.tolist()) == ([wide[0]] * 2, [wide[1]] * 2)
    scale = onnx_scale(x, w, y)
    assert scale.dtype == F32 and scale == F32(x * w) / y
    assert onnx_scale(x, [w, 2 * w], y).tolist() == [scale, 2 * scale]


def rounded(x, mode):
    """The nearest integer of a rational; ties by the mode."""
    if mode == "onnx":
        return round(x)
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x))


@pytest.mark.parametrize("mode", ["tflite", "single", "onnx"])
@pytest.mark.parametrize("x_dtype, y_dtype", [(np.int8, np.int8), (np.uint8, np.int8),
                                              (np.int8, np.uint8), (np.uint8, np.uint8)])
def test_tables_equal_rationals(mode, x_dtype, y_dtype):
    """Functions with rational values, and scales that give many ties."""
    x_limits, y_limits = np.iinfo(x_dtype), np.iinfo(y_dtype)
    functions = {
        "leaky": (leaky_relu(0.25), lambda x: max(x, x / 4)),
        "same": (lambda x: x, lambda x: x),
        "square": (lambda x: x * x, lambda x: x * x),
    }
    for function, exact in functions.values():
        for x_zero_point, y_zero_point in ((x_limits.min, y_limits.max), (5, 7)):
            table = activation_table(
                function, 0.125, x_zero_point, 0.25, y_zero_point,
                mode=mode, x_dtype=x_dtype, y_dtype=y_dtype,
            )
            assert table.dtype == y_dtype and table.shape == (256,)
            for x in range(x_limits.min, x_limits.max + 1):
                y = exact(Fraction(x - x_zero_point, 8)) * 4
                y = min(max(rounded(y, mode) + y_zero_point, y_limits.min), y_limits.max)
                assert table[x % 256] == y


def test_functions():
    points = [-800.0, -30.0, -3.0, -1.5, -1e-9, 0.0, 0.7, 2.9, 3.0, 31.0, 800.0]
    for x in points:
        assert math.isclose(sigmoid(x), (1 + math.tanh(x / 2)) / 2, abs_tol=1e-13)
        assert tanh(x) == math.tanh(x)
        assert math.isclose(gelu(x), x * (1 + math.erf(x / math.sqrt(2))) / 2, abs_tol=1e-13)
        assert math.isclose(hard_swish(x), x * min(max(x / 6 + 0.5, 0), 1))
        assert leaky_relu(0.1)(x) == max(x, 0.1 * x)
    assert (sigmoid(0.0), gelu(0.0), hard_swish(-3.0), hard_swish(3.0)) == (0.5, 0, 0, 3)
    # The integral of a Gaussian up to x, by the midpoints of 100,000 steps.
    step = 1.3e-5
    density = np.exp(-((np.arange(100_000) + 0.5) * step) ** 2 / 2) / math.sqrt(math.tau)
    assert math.isclose(gelu(1.3), 1.3 * (0.5 + density.sum() * step), rel_tol=1e-9)


def test_tables_saturate():
    table = activation_table(lambda x: math.inf if x > 0 else -math.inf, 1, 0, 1, 0)
    assert table[1:128].tolist() == [127] * 127
    assert table[128:].tolist() == [-128] * 128
    # numpy functions work too.
    assert np.array_equal(
        activation_table(np.tanh, 0.05, 3, 1 / 128, 0), activation_table(tanh, 0.05, 3, 1 / 128, 0)
    )


QUOTIENT = "x_scale * w_scale / y_scale must be"
BAD = [
    (lambda: quantize_multiplier(0), ValueError,
     "scale must be finite and above 0 in float64, not 0"),
    (lambda: quantize_multiplier([1, -0.5]), ValueError,
     "scale must be finite and above 0 in float64, not -0.5"),
    (lambda: quantize_multiplier(math.nan), ValueError,
     "scale must be finite and above 0 in float64, not nan"),
    (lambda: quantize_multiplier(math.inf), ValueError,
     "scale must be finite and above 0 in float64, not inf"),
    (lambda: quantize_multiplier("1"), TypeError, "scale must be real numbers, not <U1"),
    (lambda: quantize_multiplier(True), TypeError, "scale must be real numbers, not bool"),
    (lambda: quantize_multiplier(2.0**31), ValueError,
     "scale must be under 2**31 when rounded, not 2147483648.0"),
    (lambda: quantize_multiplier(2.0**31 - 0.5), ValueError,
     "scale must be under 2**31 when rounded, not 2147483647.5"),
    (lambda: tflite_scale(-1, 1, 1), ValueError,
     "x_scale must be finite and above 0 in float32, not -1"),
    (lambda: tflite_scale(1, [1, 1e-50], 1), ValueError,
     "w_scale must be finite and above 0 in float32, not 1e-50"),
    (lambda: tflite_scale(1, 1, 1e39), ValueError,
     "y_scale must be finite and above 0 in float32, not 1e+39"),
    (lambda: tflite_scale([1, 1], 1, 1), ValueError, "x_scale must be a scalar, not of shape (2,)"),
    (lambda: tflite_scale(1, [[1]], 1), ValueError,
     "w_scale must be a scalar or of shape (N,), not (1, 1)"),
    (lambda: tflite_scale(1, 1, 1, product="float16"), ValueError,
     "product must be float32 or float64, not 'float16'"),
    (lambda: tflite_scale(1e-30, 1e-30, 1, product="float32"), ValueError,
     f"{QUOTIENT} finite and above 0 in float64, not 0.0"),
    (lambda: tflite_scale(1e30, [1, 1], 1e-30), ValueError,
     f"{QUOTIENT} under 2**31 when rounded, not {float(F32(1e30)) / float(F32(1e-30))}"),
    (lambda: onnx_scale(1, math.nan, 1), ValueError,
     "w_scale must be finite and above 0 in float32, not nan"),
    (lambda: onnx_scale(1e-30, 1e-30, 1), ValueError,
     f"{QUOTIENT} finite and above 0 in float32, not 0.0"),
    (lambda: activation_table(tanh, 0, 0, 1, 0), ValueError,
     "x_scale must be finite and above 0 in float32, not 0"),
    (lambda: activation_table(tanh, 1, 0, [1], 0), ValueError,
     "y_scale must be a scalar, not of shape (1,)"),
    (lambda: activation_table(tanh, 1, 128, 1, 0), ValueError,
     "x_zero_point must be in -128..127, not 128"),
    (lambda: activation_table(tanh, 1, 0, 1, -1, y_dtype=np.uint8), ValueError,
     "y_zero_point must be in 0..255, not -1"),
    (lambda: activation_table(tanh, 1, 0.5, 1, 0), TypeError,
     "x_zero_point must be an integer, not float64"),
    (lambda: activation_table(tanh, 1, 0, 1, [0]), ValueError,
     "y_zero_point must be a scalar, not of shape (1,)"),
    (lambda: activation_table(tanh, 1, 0, 1, 0, x_dtype=np.int16), TypeError,
     "x_dtype must be int8 or uint8, not int16"),
    (lambda: activation_table(tanh, 1, 0, 1, 0, mode="float"), ValueError,
     "mode must be tflite, single or onnx, not 'float'"),
    (lambda: activation_table(lambda x: math.nan if x == 2 else x, 1, 0, 1, 0), ValueError,
     "function must give a number, not nan for 2.0"),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=[case[2] for case in BAD])
def test_rejects(call, error, message):
    with rejects(error, message):
        call()
