"""Forms that exporters write, rewritten for the quantization of onnxruntime."""

import numpy as np
import pytest
from onnx_models import Builder, require, run_runtime

from weft.models.onnx.calibration import Feeds
from weft.models.onnx.quantize import prepare, quantize, rewrite

F32 = np.float32


def jax_layer(b, x, columns, *, row):
    """``maximum(x @ w + bias, 0)`` as jax2onnx exports it."""
    y = b.node("Gemm", x, b.weights(16, columns), F32(0), alpha=1.0, beta=0.0)
    bias = b.weights(1, columns) if row else b.weights(columns, scale=1)
    return b.node("Max", b.node("Add", y, bias), F32(0))


def kinds(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize("row", [True, False])
def test_a_layer_of_jax_is_one_quantized_product(row):
    b = Builder(seed=80)
    y = jax_layer(b, b.input("x", ["B", 16]), 8, row=row)
    data = b.bytes(y)
    samples = b.rng.normal(size=(12, 16)).astype(F32)
    prepared = prepare(data, "net.onnx")
    from onnx import ModelProto

    assert kinds(ModelProto.FromString(prepared)) == ["Gemm", "Relu"]
    assert np.allclose(run_runtime(prepared, [samples])[0], run_runtime(data, [samples])[0])
    quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "calib.npz"))


def relu6(b, x):
    return b.node("Min", b.node("Max", x, F32(0)), F32(6))


def shared(b, x):
    low = b.node("Max", x, F32(-1))
    return b.node("Add", b.node("Min", F32(1), low), low)


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize("build, expected", [
    (relu6, ["Clip"]),
    (shared, ["Clip", "Clip", "Add"]),
    (lambda b, x: b.node("Min", b.node("Relu", x), F32(6)), ["Clip"]),
    (lambda b, x: b.node("Max", b.node("Min", x, F32(2)), F32(1)), ["Clip", "Clip"]),
    (lambda b, x: b.node("Max", x, F32(np.nan)), ["Max"]),
    (lambda b, x: b.node("Max", x, x), ["Max"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), b.weights(1, 4)), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), F32(2)), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(4, 16), b.weights(4), beta=0.0, transB=1), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), np.zeros(4, F32)), ["MatMul"]),
    (lambda b, x: b.node("Einsum", x, b.weights(4, 16), equation="ij,kj->ik"),
     ["Transpose", "MatMul"]),
    (lambda b, x: b.node("Einsum", x, b.weights(16, 4), equation="ij,jk->ki"),
     ["MatMul", "Transpose"]),
    (lambda b, x: b.node("Einsum", x, b.weights(3, 16), equation="ij,kj->i"), ["Einsum"]),
])
def test_results_stay_equal(build, expected):
    b = Builder(seed=81)
    y = build(b, b.input("x", [5, 16]))
    model = b.model(y)
    x = 4 * b.rng.normal(size=(5, 16)).astype(F32)
    [before] = run_runtime(model.SerializeToString(), [x])
    rewrite(model)
    assert kinds(model) == expected
    [after] = run_runtime(model.SerializeToString(), [x])
    assert np.allclose(before, after, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_unread_initializers_go():
    require("onnx")
    b = Builder(seed=82)
    model = b.model(b.node("Gemm", b.input("x", [5, 16]), b.weights(16, 4), F32(0), beta=0.0))
    rewrite(model)
    assert [tensor.name for tensor in model.graph.initializer] == ["c0"]
