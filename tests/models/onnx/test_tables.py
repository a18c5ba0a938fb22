"""Functions of one 8-bit number as tables, against onnxruntime, for all 256 numbers."""

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime, require

from weft.models.onnx import load

F32, I8, U8 = np.float32, np.int8, np.uint8


def compare(b, y, dtype, kernels, inputs=None):
    """The graph, after its results for all bytes were compared."""
    inputs = inputs or [np.arange(256, dtype=U8).view(dtype)]
    return equal_to_runtime(b, y, inputs, dtype, kernels)


@pytest.mark.parametrize("dtype", [I8, U8])
@pytest.mark.parametrize("chain", [
    [], ["Sigmoid"], ["Tanh"], ["HardSwish"], ["LeakyRelu"], ["Relu"], ["Erf", "Tanh"],
])
def test_between(dtype, chain):
    b = Builder(seed=50)
    y = b.node("DequantizeLinear", b.input("x", [256], dtype), F32(0.031), dtype(90))
    for kind in chain:
        y = b.node(kind, y)
    y = b.node("QuantizeLinear", y, F32(0.0173), dtype(3))
    [node] = compare(b, y, dtype, ["table"]).nodes
    # Without the conversions around it, if there is an operator between them.
    assert node.position == (tuple(range(1, len(chain) + 1)) or (0, 1))


def test_between_with_constants():
    b = Builder(seed=51)
    y = b.node("DequantizeLinear", b.input("x", [256], I8), F32(0.031), I8(9))
    y = b.node("Clip", b.node("Add", F32(3), y), F32(0), F32(6))
    y = b.node("Sub", F32(1), b.node("Mul", y, F32(1 / 6)))
    compare(b, b.node("QuantizeLinear", y, F32(0.01), I8(3)), I8, ["table"])


@pytest.mark.parametrize("dtype", [I8, U8])
@pytest.mark.parametrize("kind, attributes", [
    ("QLinearSigmoid", {}), ("QLinearLeakyRelu", dict(alpha=0.1)),
])
def test_qlinear(dtype, kind, attributes):
    b = Builder(seed=52)
    y = b.node(
        kind, b.input("x", [256], dtype), F32(0.04), dtype(11), F32(0.006), dtype(5),
        domain="com.microsoft", **attributes,
    )
    compare(b, y, dtype, ["table"])


def test_a_result_that_is_read_twice_is_no_table():
    b = Builder(seed=53)
    y = b.node("Sigmoid", b.node("DequantizeLinear", b.input("x", [256], I8), F32(0.03), I8(9)))
    z = b.node("QuantizeLinear", y, F32(1 / 256), I8(-128))
    z = b.node("DequantizeLinear", z, F32(1 / 256), I8(-128))
    y = b.node("QuantizeLinear", b.node("Sub", y, z), F32(1e-4), I8(0))
    require("onnx")
    kernels = [node.kernel for node in load(b.bytes(y, dtype=I8), "net.onnx").nodes]
    assert kernels == [
        "onnx.dequantize", "onnx.sigmoid", "onnx.quantize", "onnx.dequantize", "onnx.subtract",
        "onnx.quantize",
    ]


def test_two_operands_of_one_tensor_are_no_table():
    b = Builder(seed=53)
    x = b.node("DequantizeLinear", b.input("x", [256], I8), F32(0.031), I8(9))
    y = b.node("Sigmoid", x)
    y = b.node("Mul", y, x)
    kernels = ["onnx.dequantize", "onnx.sigmoid", "onnx.multiply", "onnx.quantize"]
    y = b.node("QuantizeLinear", y, F32(0.017), I8(3))
    compare(b, y, I8, kernels)


def test_a_table_with_an_invalid_number_is_no_table():
    b = Builder(seed=54)
    y = b.node("DequantizeLinear", b.input("x", [256], I8), F32(0.031), I8(9))
    y = b.node("QuantizeLinear", b.node("Log", y), F32(0.017), I8(3))
    require("onnx")
    kernels = [node.kernel for node in load(b.bytes(y, dtype=I8), "net.onnx").nodes]
    assert kernels == ["onnx.dequantize", "onnx.log", "onnx.quantize"]
