"""Operands of the core, sums with zero points, and their conversion, by hand."""

import numpy as np
from ml_dtypes import bfloat16

from weft.models.arithmetic import (
    FloatFinish,
    IntegerFinish,
    Rescale,
    core_parts,
    host_operand,
    shifted_zero,
)
from weft.models.ir import Requantization


def test_uint8_is_int8_with_an_offset():
    (part,) = core_parts(np.array([0, 127, 128, 255], np.uint8))
    assert part.dtype == np.int8 and part.tolist() == [-128, -1, 0, 127]
    assert shifted_zero(130, np.dtype(np.uint8)) == 2
    assert shifted_zero(-5, np.dtype(np.int8)) == -5


def test_int16_is_a_high_and_a_low_byte():
    x = np.array([-32768, -1, 0, 255, 256, 32767], np.int16)
    high, low = core_parts(x)
    assert high.dtype == low.dtype == np.int8
    assert (256 * high.astype(int) + low + 128).tolist() == x.tolist()
    assert host_operand(x) is x
    # x - 5 = 256 * high + low - (5 - 128)
    assert shifted_zero(5, np.dtype(np.int16), split=True) == -123
    assert shifted_zero(5, np.dtype(np.int16)) == 5


def test_float32_is_rounded_to_even():
    (part,) = core_parts(np.array([1, 1 + 2**-8, 1 + 3 * 2**-8], np.float32))
    assert part.dtype == bfloat16 and part.astype(float).tolist() == [1, 1, 1 + 2**-6]


def test_sums_with_zero_points_and_bias():
    a, b = np.array([[[1, -2, 3]]]), np.array([[[4, 5], [6, -7], [-8, 9]]])
    finish = IntegerFinish(
        k=3, x_zero=2, w_zero=np.array([[1, -3]]), bias=np.array([[10, 20]]),
        column_sums=b.sum(1), rescale=None, dtype=np.dtype(np.int32),
    )
    # (-1, -4, 1) times (3, 5, -9) and (8, -4, 12), with the bias
    expected = [[[-32 + 10, 20 + 20]]]
    np.testing.assert_array_equal(finish.sums(a @ b, a), expected)
    computed = IntegerFinish(
        k=3, x_zero=2, w_zero=finish.w_zero, bias=finish.bias, column_sums=None, rescale=None,
        dtype=finish.dtype,
    )
    np.testing.assert_array_equal(computed.sums(a @ b, a, b.swapaxes(1, 2)), expected)
    assert finish.apply(np.array([2**31 + 5])).tolist() == [-(2**31) + 5]


def test_float_results_get_bias_and_limits():
    y = FloatFinish(np.array([1, 2], np.float32), 0.0, 6.0).apply(np.array([[-3.0, 5.0]]))
    assert y.tolist() == [[0, 6]]


def rescale(dtype, *, wide=False, mode="tflite", zero=3):
    limits = np.iinfo(dtype)
    given = Requantization(
        x_scale=0.5, w_scale=np.array([1, 0.5], np.float32), y_scale=2.0, zero=zero,
        low=limits.min, high=limits.max, dtype=np.dtype(dtype), wide=wide,
    )
    return Rescale.of(given, 2, mode)


def test_scales_of_channels():
    # Scales 1/4 and 1/8; ties away from zero, in onnx to even.
    sums = np.array([[6, 12], [-6, -12], [10, 20], [4000, 4000]])
    assert rescale(np.int8).apply(sums).tolist() == [[5, 5], [1, 1], [6, 6], [127, 127]]
    onnx = rescale(np.int8, mode="onnx").apply(sums)
    assert onnx.tolist() == [[5, 5], [1, 1], [5, 5], [127, 127]]


def test_sums_of_64_bits():
    # Only sums of 32 bits wrap; those of 64 bits are rounded with ties up.
    wide = rescale(np.int16, wide=True, zero=0).apply(np.array([[1 << 32, -44]]))
    assert wide.tolist() == [[32767, -5]]
    assert rescale(np.int16, zero=0).apply(np.array([[(1 << 32) + 8, 8]])).tolist() == [[2, 1]]
