"""Products of float32, and the operators after them that fuse, against onnxruntime."""

import numpy as np
import pytest
from onnx_models import Builder, attention, cnn, equal_to_runtime, require

from weft.models.ir import Gemm
from weft.models.onnx import load

F32 = np.float32


def compare(b, y, *shapes, kinds):
    """The graph, after its result for random inputs was compared."""
    inputs = [b.rng.normal(size=shape).astype(F32) for shape in shapes]
    return equal_to_runtime(b, y, inputs, kinds=kinds, tolerance=2e-5)


@pytest.mark.parametrize("after, activation", [
    ([], "none"), (["Relu"], "relu"), (["Clip"], "relu6"), (["Max"], "relu"),
])
def test_conv_normalized_biased_and_activated(after, activation):
    b = Builder(seed=40)
    y = b.node("Conv", b.input("x", [1, 4, 6, 6]), b.weights(8, 2, 3, 3), b.weights(8), group=2)
    numbers = [b.constant(b.rng.uniform(0.5, 1, 8).astype(F32)) for _ in range(4)]
    y = b.node("BatchNormalization", y, *numbers, epsilon=1e-3)
    y = b.node("Add", b.weights(8, 1, 1), b.node("Mul", y, b.weights(1, 8, 1, 1)))
    for kind in after:
        limits = {"Clip": [F32(0), F32(6)], "Max": [F32(0)]}
        y = b.node(kind, y, *limits.get(kind, []))
    [node] = compare(b, y, (1, 4, 6, 6), kinds=["Conv"]).nodes
    assert (node.activation, node.position) == (activation, tuple(range(4 + len(after))))


def test_matmul_with_bias():
    b = Builder(seed=41)
    y = b.node("MatMul", b.input("x", [2, 5, 12]), b.weights(12, 7))
    y = b.node("Relu", b.node("Add", y, b.weights(7)))
    [node] = compare(b, y, (2, 5, 12), kinds=["MatMul"]).nodes
    assert node.activation == "relu"


@pytest.mark.parametrize("shape", [(5, 1), (2, 5, 7), (1, 1, 1, 7)])
def test_an_addition_of_more_than_a_row_stays(shape):
    b = Builder(seed=42)
    y = b.node("MatMul", b.input("x", [2, 5, 12]), b.weights(12, 7))
    compare(b, b.node("Add", y, b.weights(*shape)), (2, 5, 12), kinds=["MatMul", "onnx.add"])


def test_a_result_with_two_readers_stays():
    b = Builder(seed=43)
    y = b.node("MatMul", b.input("x", [5, 12]), b.weights(12, 7))
    y = b.node("Add", b.node("Relu", y), y)
    compare(b, y, (5, 12), kinds=["MatMul", "onnx.relu", "onnx.add"])


@pytest.mark.parametrize("attributes", [
    dict(alpha=0.5, beta=2.0), dict(transA=1, transB=1), dict(transB=1, alpha=3.0),
])
def test_gemm(attributes):
    b = Builder(seed=44)
    x = (12, 5) if attributes.get("transA") else (5, 12)
    w = b.weights(*((7, 12) if attributes.get("transB") else (12, 7)))
    y = b.node("Gemm", b.input("x", x), w, b.weights(1, 7), **attributes)
    compare(b, y, x, kinds=["Gemm"])


@pytest.mark.parametrize("x, w, kinds", [
    ([12], (12, 7), ["reshape", "MatMul", "reshape"]),
    ([3, 12], (12,), ["MatMul", "reshape"]),
    ([3, 12], (1, 12, 7), ["MatMul"]),
    ([2, 3, 12], (1, 12, 7), ["MatMul"]),
    ([2, 3, 12], (2, 12, 7), ["MatMul"]),
    ([3, 12], (2, 12, 7), ["MatMul"]),
])
def test_ranks_of_matmul(x, w, kinds):
    b = Builder(seed=45)
    compare(b, b.node("MatMul", b.input("x", x), b.weights(*w)), x, kinds=kinds)


def test_two_activations():
    b = Builder(seed=46)
    x, y = b.input("x", [2, 3, 4, 5]), b.input("y", [3, 5, 6])
    graph = compare(b, b.node("MatMul", x, y), (2, 3, 4, 5), (3, 5, 6), kinds=["MatMul"])
    assert graph.nodes[0].b == graph.inputs[1]


@pytest.mark.parametrize("network, shape", [(cnn, (1, 3, 10, 10)), (attention, (1, 6, 16))])
def test_whole_networks(network, shape):
    require("onnx")
    b, y = network()
    graph = load(b.bytes(y), "net.onnx")
    kinds = [n.operator if isinstance(n, Gemm) else n.kernel for n in graph.nodes]
    compare(b, y, shape, kinds=kinds)
    assert sum(isinstance(node, Gemm) for node in graph.nodes) == (5 if network is cnn else 7)


def test_double_precision_runs_in_onnxruntime():
    require("onnx")
    b = Builder(seed=47)
    w = b.constant(b.rng.normal(size=(4, 3)))
    y = b.node("MatMul", b.input("x", [2, 4], np.float64), w)
    [node] = load(b.bytes(y, dtype=np.float64), "net.onnx").nodes
    assert node.kernel == "onnx.model"
