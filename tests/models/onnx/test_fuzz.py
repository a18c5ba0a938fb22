"""Mutated files: each is read, or rejected with a message that starts with the file's name."""

import itertools

import numpy as np
import pytest
from mutations import mutated
from onnx_models import Builder, attention, cnn, require

from weft.models.errors import ModelError
from weft.models.onnx import load

F32, I8, U8 = np.float32, np.int8, np.uint8


def quantized():
    """A network in the form QOperator, with operators of onnxruntime."""
    b = Builder(seed=80)
    x = b.input("x", [1, 4, 6, 6], U8)
    w = b.rng.integers(-127, 127, (8, 2, 3, 2), I8)
    y = b.node(
        "QLinearConv", x, F32(0.02), U8(23), w, b.rng.uniform(0.01, 0.03, 8).astype(F32),
        np.zeros(8, I8), F32(0.9), U8(60), b.rng.integers(-3000, 3000, 8, np.int32), group=2,
    )
    y = b.node(
        "QLinearGlobalAveragePool", y, F32(0.9), U8(60), F32(0.1), U8(23), domain="com.microsoft"
    )
    y = b.node("Flatten", y)
    y = b.node("DequantizeLinear", y, F32(0.1), U8(23))
    w = b.node("DequantizeLinear", b.constant(b.rng.integers(-127, 127, (8, 5), I8)), F32(0.1))
    y = b.node("QuantizeLinear", b.node("Sigmoid", b.node("MatMul", y, w)), F32(1 / 255), U8(0))
    return b, b.node("MatMulInteger", y, b.rng.integers(-127, 127, (5, 4), I8))


def moves():
    """Shapes that are computed, and operators with attributes and constants."""
    import onnx

    b = Builder(seed=81)
    x = b.input("x", ["n", 3, 4, 4])
    first = b.node("Unsqueeze", b.node("Gather", b.node("Shape", x), np.int64(0)), np.int64([0]))
    y = b.node("Pad", b.node("Slice", x, np.int64([0]), np.int64([-1]), np.int64([1])),
               np.int64([0, 0, 1, 1, 0, 0, 1, 1]), F32(0))
    y = b.node("Resize", y, "", F32([1, 1, 2, 2]), mode="nearest")
    y = b.node("ReduceMean", b.node("AveragePool", y, kernel_shape=[2, 2]), axes=[2])
    y = b.node("Concat", *b.node("Split", y, np.int64([1, 1]), axis=1, outputs=2), axis=1)
    y = b.node("Reshape", y, b.node("Concat", first, np.int64([-1]), axis=0))
    one = onnx.numpy_helper.from_array(np.int64([1]))
    ones = b.node("ConstantOfShape", np.int64([1]), value=one)
    return b, b.node("ArgMax", b.node("Expand", y, ones))


def older():
    """Operator set 9, which is converted."""
    b = Builder(seed=82, opset=9, domains=())
    y = b.node("Clip", b.node("MatMul", b.input("x", [1, 2, 4]), b.weights(4, 3)), max=6.0)
    y = b.node("Upsample", b.node("Unsqueeze", y, axes=[0]), F32([1, 1, 2, 2]), mode="nearest")
    return b, b.node("Squeeze", y, axes=[0])


CORPUS = [(cnn, F32), (attention, F32), (quantized, np.int32), (moves, np.int64), (older, F32)]


@pytest.mark.filterwarnings("ignore")  # numpy's, at numbers that overflow
@pytest.mark.parametrize("start, count", [
    (0, 120), pytest.param(1000, 1000, marks=pytest.mark.slow),
    *(pytest.param(n, 1000, marks=pytest.mark.long) for n in range(2000, 6000, 1000)),
])
def test_mutated_files(start, count):
    require("onnx", "onnxruntime")
    files = []
    for build, dtype in CORPUS if count > 120 else CORPUS[:-1]:  # each conversion is a process
        b, y = build()
        files.append(b.bytes(y, dtype=dtype))
        load(files[-1], "net.onnx")
    rejected = 0
    for seed, data in zip(range(start, start + count), itertools.cycle(files)):
        try:
            load(mutated(data, seed), "net.onnx")
        except ModelError as error:
            assert str(error).startswith("net.onnx: "), seed
            rejected += 1
    assert count / 4 < rejected < count
