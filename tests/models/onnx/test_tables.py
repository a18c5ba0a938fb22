"""Functions of one 8-bit number as tables, against onnxruntime, for all 256 numbers."""

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, equal_to_runtime, require, run_runtime

from weft.config import Config
from weft.models.exactness import exactness_of
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


@pytest.mark.parametrize("dtype", [I8, U8])
@pytest.mark.parametrize("kind, alphas, tolerance", [
    # onnxruntime approximates the exponential: few results next to ties differ, and are so claimed.
    ("QLinearSigmoid", [None], 1), ("QLinearLeakyRelu", [0.01, 0.2, 0.25], 0),
])
def test_qlinear_with_many_scales(dtype, kind, alphas, tolerance):
    """Decimal scales have many values next to ties; binary64 rounds them in another way."""
    require("onnx", "onnxruntime")
    rng, limits = np.random.default_rng(54), np.iinfo(dtype)
    b = Builder(seed=54)
    x, ends = b.input("x", [256], dtype), []
    for i in range(150):
        x_scale, y_scale = (F32(n / 1000) for n in rng.integers(1, 100, 2))
        x_zero, y_zero = (dtype(n) for n in rng.integers(limits.min, limits.max + 1, 2))
        alpha = alphas[i % len(alphas)]
        ends.append(b.node(
            kind, x, x_scale, x_zero, y_scale, y_zero, domain="com.microsoft",
            **({} if alpha is None else {"alpha": alpha}),
        ))
    data, inputs = b.bytes(*ends, dtype=dtype), [np.arange(256, dtype=U8).view(dtype)]
    graph = load(data, "net.onnx")
    assert {node.kernel for node in graph.nodes} == {"table"}
    ours, expected = run_graph(graph, inputs, mode="onnx"), run_runtime(data, inputs)
    differ = sum(
        np.abs(ours[number].astype(int) - y.astype(int))
        for number, y in zip(graph.outputs, expected, strict=True)
    )
    assert differ.sum() <= 3 * tolerance
    claim = exactness_of(graph, "onnx", Config(rows=2, cols=4, depth=4)).claim
    assert ("next to ties may differ by 1" in claim) == bool(tolerance)


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
