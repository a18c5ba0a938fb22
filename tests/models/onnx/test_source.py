"""Constants are folded, aliases resolved, and subgraphs keep their inputs."""

import re

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime

from weft.models.errors import ModelError
from weft.models.onnx import load

F32, I64 = np.float32, np.int64
pytestmark = pytest.mark.usefixtures("onnxruntime")


def compare(b, y, *inputs, dtype=F32):
    return equal_to_runtime(b, y, inputs, dtype, tolerance=1e-5)


def test_shapes_are_folded():
    """As PyTorch exports ``x.reshape(x.shape[0], -1)``."""
    b = Builder(seed=60)
    x = b.input("x", ["n", 3, 4])
    first = b.node("Gather", b.node("Shape", x), I64(0), axis=0)
    shape = b.node("Concat", b.node("Unsqueeze", first, I64([0])), I64([-1]), axis=0)
    y = b.node("Relu", b.node("Reshape", x, shape))
    graph = compare(b, y, b.rng.normal(size=(1, 3, 4)).astype(F32))
    assert [node.operator for node in graph.nodes] == ["Reshape", "Relu"]
    assert [node.position for node in graph.nodes] == [(4,), (5,)]
    assert graph.operators == ("Shape", "Gather", "Unsqueeze", "Concat", "Reshape", "Relu")


def test_weights_are_folded():
    b = Builder(seed=61)
    w = b.node("Transpose", b.node("Mul", b.weights(5, 4), F32(2)), perm=[1, 0])
    graph = compare(b, b.node("MatMul", b.input("x", [3, 4]), w), np.ones((3, 4), F32))
    assert [node.operator for node in graph.nodes] == ["MatMul"]


def test_constant_nodes():
    b = Builder(seed=62)
    numbers = b.node("Constant", value_floats=[1.0, 2.0, 3.0])
    graph = compare(b, b.node("Add", b.input("x", [2, 3]), numbers), np.ones((2, 3), F32))
    assert [node.operator for node in graph.nodes] == ["Add"]


def test_identities_vanish():
    b = Builder(seed=63)
    x = b.node("Dropout", b.node("Identity", b.input("x", [2, 3])), F32(0.5))
    graph = compare(b, b.node("Identity", b.node("Relu", x)), np.ones((2, 3), F32))
    assert [(node.operator, node.inputs) for node in graph.nodes] == [("Relu", graph.inputs)]


def test_unused_outputs_vanish():
    b = Builder(seed=63)
    y = b.node("MaxPool", b.input("x", [1, 1, 4, 4]), outputs=2, kernel_shape=[2, 2])[0]
    y = b.node("Dropout", y, outputs=2)[0]
    graph = compare(b, b.node("Relu", y), np.ones((1, 1, 4, 4), F32))
    assert [node.kernel for node in graph.nodes] == ["onnx.max_pool", "onnx.relu"]


@pytest.mark.parametrize("given", [True, False])
def test_a_dropout_in_training_stays(given):
    b = Builder(seed=63)
    training = b.constant(np.asarray(True)) if given else b.input("training", [], bool)
    y = b.node("Dropout", b.input("x", [2, 3]), F32(0.5), training)
    assert [node.kernel for node in load(b.bytes(y), "net.onnx").nodes] == ["onnx.model"]


def test_tensors_without_elements():
    b = Builder(seed=64)
    x = b.input("x", [4, 4])
    empty = b.node("Slice", x, I64([0]), I64([0]), I64([0]))
    y = b.node("Concat", b.node("Relu", empty), x, axis=0)
    graph = compare(b, y, np.ones((4, 4), F32))
    assert [node.kernel for node in graph.nodes] == ["onnx.model"] * 3


def test_large_constants_are_not_folded():
    """A file of some bytes may not take gigabytes."""
    b = Builder(seed=64)
    zeros = b.node("ConstantOfShape", I64([1 << 15, 1 << 15]))
    y = b.node("Gather", zeros, b.input("x", [1], np.int64))
    graph = load(b.bytes(y), "net.onnx")
    assert [node.kernel for node in graph.nodes] == ["onnx.model", "onnx.gather"]


@pytest.mark.parametrize("sizes", [[1 << 20, 1 << 20], [1 << 62, 4], [-3]])
def test_rejects_sizes_that_cannot_be(sizes):
    b = Builder(seed=65)
    data = b.bytes(b.node("Relu", b.node("ConstantOfShape", I64(sizes))))
    with pytest.raises(ModelError, match=r"net.onnx: node ConstantOfShape0 \(ConstantOfShape\)"):
        load(data, "net.onnx")


def test_subgraphs_run_in_onnxruntime():
    """Both branches of the If read a tensor of the graph around them."""
    from onnx import helper

    b = Builder(seed=66)
    y = b.node("Relu", b.input("x", [4]))
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, [y, y], [name])], name, [],
            [helper.make_tensor_value_info(name, 1, [4])],
        ) for name, kind in (("then", "Add"), ("else", "Mul"))
    }
    z = b.node("If", b.input("which", [], bool), **branches)
    x = F32([-1, 1, 3, 5])
    for which in (True, False):
        graph = compare(b, z, x, np.asarray(which))
    assert [node.kernel for node in graph.nodes] == ["onnx.relu", "onnx.model"]


def test_rejects_a_tensor_that_is_not_computed():
    b = Builder(seed=67)
    y = b.node("Relu", b.input("x", [4]))
    model = b.model(y)
    model.graph.output[0].name = "z"
    with pytest.raises(ModelError, match=re.escape("net.onnx: ")):
        load(model.SerializeToString(), "net.onnx")
