"""onnxruntime on whole files, node by node."""

import re

import numpy as np
import pytest
from onnx_models import Builder, run_runtime

from weft.models.errors import ModelError
from weft.models.onnx.agreement import ort

F32, I8 = np.float32, np.int8
pytestmark = pytest.mark.usefixtures("onnxruntime")


def test_each_inference_has_its_outputs():
    b = Builder(seed=90)
    x, y = b.input("x", [2, 3]), b.input("y", [2, 3])
    data = b.bytes(b.node("Add", x, y), b.node("Sub", x, y))
    inputs = [[F32(np.full((2, 3), i)), F32(np.ones((2, 3)))] for i in range(2)]
    for i, (total, difference) in enumerate(ort(data, inputs, optimized=False)):
        assert np.all(total == i + 1) and np.all(difference == i - 1)


def test_a_softmax_between_is_not_replaced():
    b = Builder(seed=91)
    y = b.node("DequantizeLinear", b.input("x", [40, 8], I8), F32(0.1), I8(0))
    y = b.node("QuantizeLinear", b.node("Softmax", y, axis=-1), F32(1 / 255), I8(-128))
    data = b.bytes(y, dtype=I8)
    x = b.rng.integers(-128, 128, (40, 8), I8)
    e = np.exp(x * 0.1 - np.max(x * 0.1, axis=-1, keepdims=True))
    expected = np.clip(np.rint(e / e.sum(axis=-1, keepdims=True) * 255) - 128, -128, 127)
    [[ours]] = ort(data, [[x]], optimized=False)
    assert np.array_equal(ours, expected)
    assert not np.array_equal(run_runtime(data, [x], optimized=True)[0], expected)


@pytest.mark.parametrize("shape, message", [
    ((3, 3), "onnxruntime cannot run the network: "),
])
def test_rejects_wrong_shapes(shape, message):
    b = Builder(seed=92)
    data = b.bytes(b.node("Relu", b.input("x", [2, 3])))
    with pytest.raises(ModelError, match=re.escape(message)):
        ort(data, [[np.zeros(shape, F32)]], optimized=False)


def test_a_second_way_to_load_a_file_prints_no_warning(capfd):
    """onnxruntime has no QGemm of int8 with its exact products, which it makes of the second."""
    b = Builder(seed=93)
    weights = b.constant(b.rng.integers(-127, 128, (4, 4), I8))
    weights = b.node("DequantizeLinear", weights, F32(0.01), I8(0))
    bias = b.node("DequantizeLinear", np.arange(4, dtype=np.int32), F32(1e-3), np.int32(0))
    y = b.input("x", [2, 4], I8)
    for _ in range(2):
        y = b.node("Gemm", b.node("DequantizeLinear", y, F32(0.1), I8(3)), weights, bias)
        y = b.node("QuantizeLinear", y, F32(0.1), I8(3))
    [[z]] = ort(b.bytes(y, dtype=I8), [[np.ones((2, 4), I8)]], optimized=True)
    assert z.shape == (2, 4) and capfd.readouterr().err == ""
