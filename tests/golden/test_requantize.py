"""The golden int8 epilogue: by hand, for all 256 values, and its errors."""

import numpy as np
import pytest
from rejects import rejects

from weft.golden import activate, add_bias, requantize, scaled

LOW, HIGH = -(1 << 31), (1 << 31) - 1
HALF = 1 << 30  # the multiplier of 0.5


@pytest.mark.parametrize("acc, multiplier, shift, tflite, single", [
    (-1, HALF, 0, 0, 0),               # -0.5: the first rounding takes ties up
    (-1, HIGH, -1, -1, 0),             # v = -1, then away from zero
    (1, HALF, 0, 1, 1),
    (-2, HALF, -1, -1, 0),             # -0.5 again, in the second rounding
    (2, HALF, -1, 1, 1),
    (1 << 29, HALF, 6, 0, HIGH),       # scaled by 32: one wraps, one saturates
    (-(1 << 29), HALF, 6, 0, LOW),
    (1 << 30, HALF, 1, -HALF, HALF),   # 2**31 wraps to -2**31, halved
    (1, HALF, 31, -HALF, HALF),
    (1, HIGH, 31, -HIGH, HIGH),        # nothing left to round
    (2, HIGH, 31, 0, HIGH),
    (LOW, HALF, 31, 0, LOW),
    (LOW, HIGH, 0, -HIGH, -HIGH),
    (HIGH, HIGH, 0, HIGH - 1, HIGH - 1),
    (HIGH, HIGH, -31, 1, 1),
    (LOW, HALF, -30, -1, -1),
    (LOW, HALF, -31, -1, 0),           # -0.5
    (HIGH, HALF, -31, 1, 0),           # a little under 0.5; the first rounding takes it up to it
    (LOW, 0, -31, 0, 0),
    (HIGH, 0, 31, 0, 0),
])
def test_by_hand(acc, multiplier, shift, tflite, single):
    assert int(scaled(acc, multiplier, shift)) == tflite
    assert int(scaled(acc, multiplier, shift, mode="single")) == single


@pytest.mark.parametrize("acc, scale, expected", [
    (1, 0.5, 0), (3, 0.5, 2), (-1, 0.5, 0), (-3, 0.5, -2), (5, 0.5, 2),
    ((1 << 24) + 1, 1, 1 << 24),       # the sum itself is rounded, to even
    ((1 << 24) + 3, 1, (1 << 24) + 4),
    (HIGH, 1, HIGH),                   # 2**31 in binary32
    (LOW, 1, LOW),
    (LOW, 3e38, LOW),                  # infinity
    (HIGH, 1e-45, 0),
])
def test_by_hand_in_onnx(acc, scale, expected):
    assert int(scaled(acc, scale=np.float32(scale), mode="onnx")) == expected


# Parameters that do not change a sum, in each mode.
UNITS = {
    "tflite": dict(multiplier=HALF, shift=1),
    "single": dict(multiplier=HALF, shift=1),
    "onnx": dict(scale=np.float32(1)),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("mode", UNITS)
def test_every_result_with_every_zero_point(mode, dtype):
    limits = np.iinfo(dtype)
    acc = np.arange(-600, 600)
    for zero_point in range(limits.min, limits.max + 1):
        y = requantize(acc, **UNITS[mode], mode=mode, zero_point=zero_point, dtype=dtype)
        assert y.dtype == dtype
        assert np.array_equal(y, np.clip(acc + zero_point, limits.min, limits.max))


@pytest.mark.parametrize("mode", UNITS)
def test_the_zero_point_is_added_without_wrap(mode):
    unit = UNITS[mode] if mode == "onnx" else dict(multiplier=HIGH, shift=0)
    y = requantize([LOW, HIGH], **unit, mode=mode, zero_point=-128)
    assert y.tolist() == [-128, 127]
    assert requantize([LOW, HIGH], **unit, mode=mode, zero_point=127).tolist() == [-128, 127]


def test_clamps():
    """A fused ReLU, a ReLU6, and a clamp to a single number."""
    acc = np.arange(-300, 300)
    unit = UNITS["tflite"]
    for zero_point, low, high in ((-5, -5, 127), (-5, -5, 55), (3, 9, 9), (0, -128, 127)):
        y = requantize(acc, **unit, zero_point=zero_point, low=low, high=high)
        assert np.array_equal(y, np.clip(acc + zero_point, low, high))
    y = requantize(acc, **unit, zero_point=100, low=100, high=200, dtype=np.uint8)
    assert np.array_equal(y, np.clip(acc + 100, 100, 200))


def test_parameters_per_channel():
    acc = np.full((3, 2), 100)
    y = requantize(acc, [HALF, 3 << 29], [0, -1])
    assert np.array_equal(y, np.full((3, 2), [50, 38]))  # 37.5 is taken up
    y = requantize(acc, scale=np.float32([0.5, 0.375]), mode="onnx")
    assert np.array_equal(y, np.full((3, 2), [50, 38]))
    assert requantize(np.zeros((0, 2), np.int32), HALF, 0).shape == (0, 2)


def test_bias_wraps():
    sums = np.array([[HIGH, LOW, 5], [0, -1, HIGH]], np.int32)
    result = add_bias(sums, np.int32([1, -1, HIGH]))
    assert result.dtype == np.int32
    assert result.tolist() == [[LOW, HIGH, LOW + 4], [1, -2, -2]]
    assert add_bias(sums, 1).tolist() == [[LOW, LOW + 1, 6], [1, 0, LOW]]


@pytest.mark.parametrize("out", [np.int8, np.uint8])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_activates_every_value(dtype, out):
    table = np.random.default_rng(3).permutation(256).astype(np.uint8).view(out)
    values = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype).reshape(16, 16)
    result = activate(values, table)
    assert result.dtype == out
    assert result.ravel().tolist() == [table[int(value) % 256] for value in values.ravel()]
    assert activate(values[::2, ::3], table).tolist() == result[::2, ::3].tolist()


UNIT = dict(multiplier=HALF, shift=1)
BAD = [
    (dict(acc=[1.0]), TypeError, "acc must be integers, not float64"),
    (dict(acc=[0, HIGH + 1]), ValueError, "acc must be in -2**31..2**31-1, not 2147483648"),
    (dict(multiplier=1.5), TypeError, "multiplier must be integers, not float64"),
    (dict(multiplier=-1), ValueError, "multiplier must be in 0..2147483647, not -1"),
    (dict(multiplier=[HALF, -HALF]), ValueError,
     "multiplier must be in 0..2147483647, not -1073741824"),
    (dict(multiplier=1 << 31), ValueError,
     "multiplier must be in 0..2147483647, not 2147483648"),
    (dict(multiplier=[HALF] * 3), ValueError,
     "multiplier must be a scalar or of shape (2,), not (3,)"),
    (dict(multiplier=None), TypeError, "multiplier must be given in mode tflite, not None"),
    (dict(shift=32), ValueError, "shift must be in -31..31, not 32"),
    (dict(shift=-32), ValueError, "shift must be in -31..31, not -32"),
    (dict(shift=np.uint64(1 << 63)), ValueError,
     "shift must be under 2**63, not 9223372036854775808"),
    (dict(shift=[[0, 0]]), ValueError, "shift must be a scalar or of shape (2,), not (1, 2)"),
    (dict(scale=1), TypeError, "scale must be absent in mode tflite, not 1"),
    (dict(mode="float"), ValueError, "mode must be tflite, single or onnx, not 'float'"),
    (dict(mode="onnx"), TypeError, "multiplier must be absent in mode onnx, not 1073741824"),
    (dict(mode="onnx", multiplier=None, shift=None), TypeError,
     "scale must be given in mode onnx, not None"),
    (dict(zero_point=128), ValueError, "zero_point must be in -128..127, not 128"),
    (dict(zero_point=-1, dtype=np.uint8), ValueError, "zero_point must be in 0..255, not -1"),
    (dict(zero_point=[0, 0]), ValueError, "zero_point must be a scalar, not of shape (2,)"),
    (dict(low=0.0), TypeError, "low must be integers, not float64"),
    (dict(low=-129), ValueError, "low must be in -128..127, not -129"),
    (dict(high=256, dtype=np.uint8), ValueError, "high must be in 0..255, not 256"),
    (dict(low=5, high=4), ValueError, "low must be at most high (4), not 5"),
    (dict(dtype=np.int16), TypeError, "dtype must be int8 or uint8, not int16"),
]
ONNX = dict(mode="onnx", multiplier=None, shift=None)
BAD += [
    (dict(scale=value, **ONNX), ValueError, f"scale must be finite and above 0, not {value}")
    for value in np.float32([0, -1, np.nan, np.inf])
] + [
    (dict(scale=0.5, **ONNX), TypeError, "scale must be float32, not float64"),
    (dict(scale=np.ones(3, np.float32), **ONNX), ValueError,
     "scale must be a scalar or of shape (2,), not (3,)"),
]


@pytest.mark.parametrize("wrong, error, message", BAD, ids=[case[2] for case in BAD])
def test_rejects(wrong, error, message):
    with rejects(error, message):
        requantize(**(dict(acc=[0, 1], **UNIT) | wrong))


def test_rejects_an_invalid_bias_or_table():
    table = np.zeros(256, np.int8)
    for call, error, message in [
        (lambda: add_bias([0.5], 1), TypeError, "acc must be integers, not float64"),
        (lambda: add_bias([0], LOW - 1), ValueError,
         "bias must be in -2**31..2**31-1, not -2147483649"),
        (lambda: add_bias([0, 0], [1]), ValueError,
         "bias must be a scalar or of shape (2,), not (1,)"),
        (lambda: activate([0], table), TypeError, "values must be int8 or uint8, not int64"),
        (lambda: activate(table, table.astype(int)), TypeError,
         "table must be int8 or uint8, not int64"),
        (lambda: activate(table, table[:255]), ValueError,
         "table must be of shape (256,), not (255,)"),
    ]:
        with rejects(error, message):
            call()
