"""Quantized products against onnxruntime: QOperator, integer products, and QDQ with its edges."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, equal_to_runtime
from products import integers

F32, I8, U8 = np.float32, np.int8, np.uint8
PAIRS = list(itertools.product((I8, U8), repeat=2))


def compare(b, y, dtype, *inputs, kinds, tolerance=0.0):
    """The graph, after its result was compared."""
    graph = equal_to_runtime(b, y, inputs, dtype, kinds, tolerance)
    assert len(np.unique(run_graph(graph, inputs, mode="onnx")[graph.outputs[0]])) > 4
    return graph


@pytest.mark.parametrize("a_type, b_type", PAIRS)
@pytest.mark.parametrize("constant, per_column", [(True, True), (True, False), (False, False)])
def test_qlinear_matmul(a_type, b_type, constant, per_column):
    if (a_type, b_type) == (I8, U8):
        pytest.skip("onnxruntime has no QLinearMatMul of int8 x uint8")
    b = Builder(seed=20)
    x = b.input("x", [2, 3, 5, 40], a_type)
    shape = (2, 3, 40, 12) if not constant else (40, 12)
    w = integers(b.rng, b_type, *shape)
    scale = b.rng.uniform(0.01, 0.03, 12 if per_column else ()).astype(F32)
    zero = integers(b.rng, b_type, 12) // 4 if per_column else b_type(5)
    y = b.node(
        "QLinearMatMul", x, F32(0.02), a_type(30), w if constant else b.input("w", shape, b_type),
        scale, zero, F32(0.7), a_type(60),
    )
    inputs = [integers(b.rng, a_type, 2, 3, 5, 40), *([] if constant else [w])]
    compare(b, y, a_type, *inputs, kinds=["QLinearMatMul"])


@pytest.mark.parametrize("attributes", [{}, dict(transA=1, transB=1, alpha=0.37)])
@pytest.mark.parametrize("quantized", [True, False])
def test_qgemm(attributes, quantized):
    b = Builder(seed=21)
    turned = bool(attributes)
    x = b.input("x", [40, 6] if turned else [6, 40], U8)
    w = integers(b.rng, I8, *((12, 40) if turned else (40, 12)))
    scale = b.rng.uniform(0.01, 0.03, 12).astype(F32)
    result = [F32(0.7), U8(60)] if quantized else []
    y = b.node(
        "QGemm", x, F32(0.02), U8(30), w, scale, np.zeros(12, I8),
        b.rng.integers(-3000, 3000, 12, np.int32), *result, domain="com.microsoft", **attributes,
    )
    x = integers(b.rng, U8, 6, 40)
    kinds = ["QGemm"] if quantized else ["QGemm", "onnx.scale"]
    compare(
        b, y, U8 if quantized else F32, np.ascontiguousarray(x.T) if turned else x, kinds=kinds,
        tolerance=None if quantized else 1e-5,
    )


@pytest.mark.parametrize("a_type, b_type", PAIRS)
@pytest.mark.parametrize("zero", ["none", "constant", "computed"])
def test_matmul_integer(a_type, b_type, zero):
    b = Builder(seed=22)
    x, kinds = b.input("x", [4, 30], a_type), ["MatMulInteger"]
    zeros = []
    if zero != "none":
        zeros = [a_type(9), integers(b.rng, b_type, 7)]
    if zero == "computed":
        zeros[0] = b.input("zero", [], a_type)
        kinds.append("onnx.subtract_zero")
    y = b.node("MatMulInteger", x, integers(b.rng, b_type, 30, 7), *zeros)
    inputs = [integers(b.rng, a_type, 4, 30), *([a_type(77)] if zero == "computed" else [])]
    compare(b, y, np.int32, *(np.asarray(value) for value in inputs), kinds=kinds)


@pytest.mark.parametrize("w_type", [U8, I8])
def test_conv_integer(w_type):
    b = Builder(seed=23)
    x = b.input("x", [1, 3, 6, 6], U8)
    w_zero = w_type(3) if w_type == U8 else w_type(0)
    y = b.node(
        "ConvInteger", x, integers(b.rng, w_type, 4, 3, 3, 3), U8(100), w_zero, pads=[1, 1, 1, 1]
    )
    compare(b, y, np.int32, integers(b.rng, U8, 1, 3, 6, 6), kinds=["ConvInteger"])


@pytest.mark.parametrize("group, attributes", [
    (1, dict(pads=[1, 0, 2, 1])),
    (2, dict(auto_pad="SAME_LOWER", strides=[2, 1])),
    (1, dict(pads=[2, 2, 2, 2], dilations=[2, 1], strides=[1, 2])),
])
def test_conv_integer_with_a_computed_zero_point(group, attributes):
    b = Builder(seed=25)
    x, zero = b.input("x", [2, 4, 6, 7], U8), b.input("zero", [], U8)
    w = integers(b.rng, U8, 6, 4 // group, 3, 3)
    y = b.node("ConvInteger", x, w, zero, U8(110), group=group, **attributes)
    inputs = integers(b.rng, U8, 2, 4, 6, 7), np.asarray(U8(77))
    compare(b, y, np.int32, *inputs, kinds=["ConvInteger", "onnx.subtract_zero"])


def test_dynamic_quantization():
    """As onnxruntime's ``quantize_dynamic`` writes a layer."""
    b = Builder(seed=24)
    x, scale, zero = b.node("DynamicQuantizeLinear", b.input("x", [3, 20]), outputs=3)
    y = b.node("MatMulInteger", x, integers(b.rng, I8, 20, 8), zero, I8(0))
    scale = b.node("Mul", scale, F32(0.02))
    y = b.node("Mul", b.node("Cast", y, to=1), scale)
    compare(b, y, F32, b.rng.normal(size=(3, 20)).astype(F32), tolerance=1e-6, kinds=[
        "onnx.dynamic_quantize", "MatMulInteger", "onnx.subtract_zero", "onnx.multiply",
        "onnx.cast", "onnx.multiply",
    ])


def dequantized(b, name, scale, zero, **attributes):
    return b.node("DequantizeLinear", name, F32(scale), np.asarray(zero), **attributes)


def bias_of(b, count, scale):
    """A DequantizeLinear of an int32 bias."""
    values = b.rng.integers(-900, 900, count, np.int32)
    scale = np.asarray(scale, F32)
    return b.node("DequantizeLinear", values, scale, np.zeros(scale.shape, np.int32), axis=0)


@pytest.mark.parametrize("after", [
    [], [("Relu",)], [("Clip", F32(-0.5), F32(0.8))], [("Relu",), ("Clip", "", F32(0.7))],
    [("Max", F32(-0.3)), ("Min", F32(0.9))],
])
@pytest.mark.parametrize("dtype", [I8, U8])
def test_conv_between(after, dtype):
    b = Builder(seed=25)
    x = dequantized(b, b.input("x", [1, 3, 6, 6], dtype), 0.02, dtype(20))
    scale = b.rng.uniform(0.004, 0.009, 6).astype(F32)
    w = dequantized(b, b.constant(integers(b.rng, I8, 6, 3, 3, 3)), scale, np.zeros(6, I8), axis=0)
    y = b.node("Conv", x, w, bias_of(b, 6, F32(0.02) * scale), pads=[1, 1, 1, 1])
    for kind, *constants in after:
        y = b.node(kind, y, *constants)
    y = b.node("QuantizeLinear", y, F32(0.021), dtype(40))
    graph = compare(b, y, dtype, integers(b.rng, dtype, 1, 3, 6, 6), kinds=["Conv"])
    [node] = graph.nodes
    assert node.position == tuple(range(3, 4 + len(after)))  # without the conversions around it
    assert any("1 products between" in note for note in graph.notes)


def test_transposed_weights_and_a_float_bias():
    """As PyTorch exports a linear layer; the bias is rounded to a number of the sums."""
    b = Builder(seed=26)
    x = dequantized(b, b.input("x", [4, 30], U8), 0.02, U8(128))
    w = dequantized(b, b.constant(integers(b.rng, I8, 8, 30)), 0.005, I8(0))
    y = b.node("Gemm", x, b.node("Transpose", w, perm=[1, 0]), b.weights(8), beta=0.5)
    y = b.node("QuantizeLinear", y, F32(0.03), U8(120))
    graph = compare(b, y, U8, integers(b.rng, U8, 4, 30), kinds=["Gemm"])
    assert any("1 float biases" in note for note in graph.notes)


def test_quantize_and_dequantize_of_weights():
    """Weights may be float constants with a QuantizeLinear after them."""
    b = Builder(seed=27)
    x = dequantized(b, b.input("x", [4, 30], I8), 0.02, I8(-3))
    scale = b.constant(np.full(8, 0.007, F32)), b.constant(np.zeros(8, I8))
    w = b.node("QuantizeLinear", b.weights(30, 8), *scale, axis=1)
    w = b.node("DequantizeLinear", w, *scale, axis=1)
    y = b.node("QuantizeLinear", b.node("MatMul", x, w), F32(0.03), I8(2))
    compare(b, y, I8, integers(b.rng, I8, 4, 30), kinds=["MatMul"])


def test_float_results_are_scaled_sums():
    b = Builder(seed=28)
    x = dequantized(b, b.input("x", [1, 3, 6], U8), 0.02, U8(128))
    scale = b.rng.uniform(0.004, 0.009, 5).astype(F32)
    w = dequantized(b, b.constant(integers(b.rng, I8, 5, 3, 3)), scale, np.zeros(5, I8), axis=0)
    graph = compare(
        b, b.node("Conv", x, w), F32, integers(b.rng, U8, 1, 3, 6), tolerance=1e-5,
        kinds=["reshape", "Conv", "reshape", "onnx.scale"],
    )
    assert any("1 products of quantized operands" in note for note in graph.notes)


def test_two_readers_of_a_float_result():
    """One QuantizeLinear may not take the float result away from another reader."""
    b = Builder(seed=29)
    x = dequantized(b, b.input("x", [4, 30], U8), 0.02, U8(128))
    w = dequantized(b, b.constant(integers(b.rng, I8, 30, 8)), 0.005, I8(0))
    y = b.node("MatMul", x, w)
    q = b.node("DequantizeLinear", b.node("QuantizeLinear", y, F32(0.03), U8(9)), F32(0.03), U8(9))
    compare(b, b.node("Add", y, q), F32, integers(b.rng, U8, 4, 30), tolerance=1e-5, kinds=[
        "MatMul", "onnx.scale", "onnx.quantize", "onnx.dequantize", "onnx.add",
    ])


def test_scales_of_rows_are_no_scales_of_columns():
    """K and N are equal; the weights are dequantized to float32."""
    b = Builder(seed=29)
    x = dequantized(b, b.input("x", [4, 8], U8), 0.02, U8(128))
    scale = b.rng.uniform(0.004, 0.009, 8).astype(F32)
    w = dequantized(b, b.constant(integers(b.rng, I8, 8, 8)), scale, np.zeros(8, I8), axis=0)
    graph = compare(
        b, b.node("MatMul", x, w), F32, integers(b.rng, U8, 4, 8), tolerance=1e-5,
        kinds=["onnx.dequantize", "MatMul"],
    )
    assert graph.nodes[1].weights.dtype == F32


def test_int4_weights():
    import ml_dtypes

    b = Builder(seed=30, opset=21)
    x = dequantized(b, b.input("x", [4, 30], U8), 0.02, U8(128))
    w = b.constant(b.rng.integers(-8, 8, (30, 8)).astype(ml_dtypes.int4))
    w = b.node("DequantizeLinear", w, F32(0.0513))
    y = b.node("QuantizeLinear", b.node("MatMul", x, w), F32(0.02), U8(100))
    [node] = compare(b, y, U8, integers(b.rng, U8, 4, 30), kinds=["MatMul"]).nodes
    assert node.weights.dtype == I8
