"""Operators that onnxruntime computes: types, sessions, and messages."""

import sys

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime

from weft.models import kernels
from weft.models.errors import ModelError
from weft.models.onnx import load

F32 = np.float32
pytestmark = pytest.mark.usefixtures("onnxruntime")


def unknown_to_onnx():
    """A model with an operator of onnxruntime alone, between two others."""
    b = Builder(seed=70)
    y = b.node("Relu", b.input("x", [2, 8]))
    y = b.node("BiasGelu", y, b.weights(8), domain="com.microsoft")
    return b, b.node("Neg", y)


def test_types_of_operators_that_onnx_does_not_know():
    b, y = unknown_to_onnx()
    x = b.rng.normal(size=(2, 8)).astype(F32)
    equal_to_runtime(b, y, [x], kinds=["onnx.relu", "onnx.model", "onnx.negative"])


def test_a_session_is_kept():
    b, y = unknown_to_onnx()
    node = load(b.bytes(y), "net.onnx").nodes[1]
    x, state = np.ones((2, 8), F32), {}
    inputs = [x, np.zeros(8, F32)][: len(node.inputs)]
    kernels.run(node.kernel, inputs, node.attributes, state)
    session = state["session"]
    kernels.run(node.kernel, inputs, node.attributes, state)
    assert state == {"session": session}


def test_rejects_an_operator_that_does_not_exist():
    b = Builder(seed=71)
    y = b.node("Nothing", b.input("x", [2]), domain="com.microsoft")
    with pytest.raises(ModelError, match=r"net.onnx: node Nothing0 \(com.microsoft.Nothing\): onn"):
        load(b.bytes(y), "net.onnx")


def test_rejects_a_damaged_model():
    with pytest.raises(ModelError, match="a sub-model: must be an ONNX model"):
        kernels.run("onnx.model", [], {"model": b"nothing"})


def test_says_that_onnxruntime_is_missing(monkeypatch):
    b, y = unknown_to_onnx()
    node = load(b.bytes(y), "net.onnx").nodes[1]
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="BiasGelu needs the package onnxruntime; "):
        kernels.run(node.kernel, [np.ones((2, 8), F32)], node.attributes)


def test_says_that_onnx_is_missing(monkeypatch):
    b, y = unknown_to_onnx()
    data = b.bytes(y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match="net.onnx: reading ONNX needs the package onnx; "):
        load(data, "net.onnx")


@pytest.mark.parametrize("opset", [21, 30])
def test_a_node_of_a_new_operator_set_has_the_oldest_that_is_equal_or_13(opset):
    import onnx
    from onnx import helper

    from weft.models.onnx.fallback import cut_out
    from weft.models.onnx.nodes import OnnxOperator

    node = helper.make_node("Det", ["x"], ["y"])
    operator = OnnxOperator(0, "Det", "", "n", ("x",), ("y",), {}, node)
    types = {"x": (np.dtype(np.float32), (2, 2)), "y": (np.dtype(np.float32), ())}
    model, _ = cut_out(operator, types, {}, [helper.make_opsetid("", opset)])
    [entry] = onnx.ModelProto.FromString(model).opset_import
    assert entry.version == {21: 13, 30: 22}[opset]  # Det of the sets 11 and 22
