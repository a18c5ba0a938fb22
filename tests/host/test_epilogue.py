"""Tests of the epilogue, and of invalid arguments, which are rejected before anything is sent."""

import numpy as np
import pytest
from rejects import rejects

from weft import Accelerator, Config
from weft.commands import JobFlag
from weft.host.emulated import GoldenTransport
from weft.host.packing import Epilogue

SMALL = {"rows": 3, "cols": 5, "depth": 2, "a_words": 64, "b_words": 64}

I8 = np.zeros((3, 4), np.int8)
U8 = np.zeros((4, 5), np.uint8)
B8 = np.zeros((4, 5), np.int8)
M = {"multiplier": 1 << 30, "shift": 0}
TABLE = np.zeros(256, np.int8)


def test_default_epilogue_returns_the_sums():
    finish = Epilogue.of(Config(requantize="none"), (3,))
    assert (finish.flags, finish.dtype, finish.requantizes) == (JobFlag(0), np.int32, False)
    sums = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert finish.add_bias(sums) is sums


def test_adds_the_bias_to_each_row():
    finish = Epilogue.of(Config(requantize="none"), (3,), bias=[1, -2, 30])
    found = finish.add_bias(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert found.dtype == np.int32
    assert found.tolist() == [[1, -1, 32], [4, 2, 35]]


def test_builds_parameter_entries():
    given = {"multiplier": [1 << 30, 0, (1 << 31) - 1], "shift": [-31, 0, 31], "zero_point": 7}
    finish = Epilogue.of(Config(), (3,), **given, bias=[1, 2, 3], low=3, out_dtype=np.uint8)
    entries = finish.entries(np.array([1, -1, (1 << 31) + 5]), np.array([0, -128, 127]))
    assert entries.tolist() == [
        (1, 1 << 30, -31, 0, 7, 3, 255), (-1, 0, 0, -128, 7, 3, 255),
        (5 - (1 << 31), (1 << 31) - 1, 31, 127, 7, 3, 255),
    ]


def test_converts_a_scale_for_the_mode():
    single = Epilogue.of(Config(requantize="single"), (2,), scale=[0.75, 3.0])
    assert (single.multiplier.tolist(), single.shift.tolist()) == ([3 << 29, 3 << 29], [0, 2])
    onnx = Epilogue.of(Config(requantize="onnx"), (2,), scale=0.1)
    assert (int(onnx.multiplier), onnx.shift) == (0x3DCCCCCD, 0)
    least = Epilogue.of(Config(requantize="onnx"), (2,), scale=1e-42)
    assert int(least.multiplier) == 1 << 23  # subnormal: as good as the least normal one


@pytest.mark.parametrize(
    ("fields", "args", "options", "kind", "text"),
    [
        ({"requantize": "none"}, (I8, B8), M, ValueError,
         "Config.requantize must be tflite or single for a multiplier and a shift, not none"),
        ({"requantize": "onnx"}, (I8, B8), M, ValueError,
         "Config.requantize must be tflite or single for a multiplier and a shift, not onnx"),
        ({"requantize": "none"}, (I8, B8), {"scale": 0.5}, ValueError,
         "Config.requantize must be tflite, single or onnx for a scale, not none"),
        ({"activation": "none"}, (I8, B8), M | {"activation": TABLE}, ValueError,
         "Config.activation must be table for an activation, not none"),
        ({}, (I8, B8), M | {"b_zero_point": [0, 0, 1, 0, 0]}, ValueError,
         ("Config.b_zero_point must be column for scaled results where b is int8 and b_zero_point"
          " not 0, not none")),
        ({}, (I8, U8), M, ValueError,
         ("Config.b_zero_point must be column for scaled results where b is uint8 and b_zero_point"
          " not 128, not none")),
        ({}, (I8, B8), M | {"a_zero_point": [0, 1, 2]}, ValueError,
         "a_zero_point must be one number for scaled results, not of shape (3,)"),
        ({}, (I8, B8), {"multiplier": 1 << 30}, TypeError,
         "shift must be given with multiplier, not None"),
        ({}, (I8, B8), {"shift": 3}, TypeError, "multiplier must be given with shift, not None"),
        ({}, (I8, B8), M | {"scale": 0.5}, TypeError,
         "multiplier must be absent where scale is given, not 1073741824"),
        ({}, (I8, B8), {"shift": 1, "scale": 0.5}, TypeError,
         "shift must be absent where scale is given, not 1"),
        ({}, (I8, B8), M | {"multiplier": 5}, ValueError,
         "multiplier must be 0 or in 2**30..2**31-1, not 5"),
        ({}, (I8, B8), M | {"multiplier": [0, 0, 0, 0, 1 << 31]}, ValueError,
         "multiplier must be 0 or in 2**30..2**31-1, not 2147483648"),
        ({}, (I8, B8), M | {"multiplier": 2.0}, TypeError,
         "multiplier must be an integer or an array of integers, not float64"),
        ({}, (I8, B8), M | {"multiplier": [1 << 30] * 4}, ValueError,
         "multiplier must be one number or one for each of the 5 columns of b, not of shape (4,)"),
        ({}, (I8, B8), M | {"shift": 32}, ValueError, "shift must be in -31..31, not 32"),
        ({}, (I8, B8), M | {"shift": [[0]]}, ValueError,
         "shift must be one number or one for each of the 5 columns of b, not of shape (1, 1)"),
        ({}, (I8, B8), {"scale": 0.0}, ValueError,
         "scale must be finite and above 0 in float64, not 0.0"),
        ({}, (I8, B8), {"scale": [1, 1, -2.0, 1, 1]}, ValueError,
         "scale must be finite and above 0 in float64, not -2.0"),
        ({}, (I8, B8), {"scale": float("nan")}, ValueError,
         "scale must be finite and above 0 in float64, not nan"),
        ({}, (I8, B8), {"scale": 2.0**31}, ValueError,
         "scale must be under 2**31 when rounded, not 2147483648.0"),
        ({}, (I8, B8), {"scale": [0.5] * 3}, ValueError,
         "scale must be one number or one for each of the 5 columns of b, not of shape (3,)"),
        ({"requantize": "onnx"}, (I8, B8), {"scale": 1e-50}, ValueError,
         "scale must be finite and above 0 in float32, not 1e-50"),
        ({"requantize": "onnx"}, (I8, B8), {"scale": 1e39}, ValueError,
         "scale must be finite and above 0 in float32, not 1e+39"),
        ({"requantize": "onnx"}, (I8, B8), {"scale": "much"}, TypeError,
         "scale must be real numbers, not <U4"),
        ({}, (I8, B8), M | {"bias": 1 << 31}, ValueError,
         "bias must be in -2147483648..2147483647, not 2147483648"),
        ({}, (I8, B8), M | {"bias": 0.5}, TypeError,
         "bias must be an integer or an array of integers, not float64"),
        ({}, (I8, B8), {"bias": [1, 2]}, ValueError,
         "bias must be one number or one for each of the 5 columns of b, not of shape (2,)"),
        ({}, (I8, B8), M | {"zero_point": 128}, ValueError,
         "zero_point must be in -128..127, not 128"),
        ({}, (I8, B8), M | {"zero_point": [1, 2]}, ValueError,
         "zero_point must be one number or one for each of the 5 columns of b, not of shape (2,)"),
        ({}, (I8, B8), M | {"low": -1, "out_dtype": np.uint8}, ValueError,
         "low must be in 0..255, not -1"),
        ({}, (I8, B8), M | {"high": 1.5}, TypeError,
         "high must be an integer or an array of integers, not float64"),
        ({}, (I8, B8), M | {"low": 5, "high": 4}, ValueError,
         "low must be at most high (4), not 5"),
        ({}, (I8, B8), M | {"out_dtype": np.int32}, TypeError,
         "out_dtype must be int8 or uint8 for scaled results, not int32"),
        ({}, (I8, B8), M | {"activation": TABLE[:255]}, ValueError,
         "activation must be of shape (256,), not (255,)"),
        ({}, (I8, B8), M | {"activation": TABLE.astype(int)}, TypeError,
         "activation must be a table of int8 or uint8, not of int64"),
        ({}, (I8, B8), M | {"activation": TABLE, "out_dtype": np.uint8}, TypeError,
         "activation must be uint8 as out_dtype is, not int8"),
        ({}, (I8, B8), {"zero_point": 3}, TypeError,
         "zero_point must be absent without a scale, not 3"),
        ({}, (I8, B8), {"high": 6}, TypeError, "high must be absent without a scale, not 6"),
        ({}, (I8, B8), {"activation": 6}, TypeError,
         "activation must be absent without a scale, not 6"),
        ({}, (I8, B8), {"out_dtype": np.int8}, TypeError,
         "out_dtype must be int32 without a scale, not int8"),
    ],
)
def test_rejects_wrong_arguments_before_sending(fields, args, options, kind, text):
    acc = Accelerator(GoldenTransport(Config(**SMALL | fields)))
    with rejects(kind, text):
        acc.matmul(*args, **options)
    assert acc.counters()["words_in"] == 0
