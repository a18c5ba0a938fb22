"""The geometry of convolutions, float32 and quantized, against onnxruntime."""

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, equal_to_runtime, require, run_runtime

from weft.models.ir import Gemm
from weft.models.onnx import load

CONV = [
    dict(),
    dict(pads=[1, 0, 2, 3], strides=[2, 1], dilations=[1, 2]),
    dict(auto_pad="SAME_UPPER", strides=[2, 3]),
    dict(auto_pad="SAME_LOWER", strides=[2, 2]),
    dict(auto_pad="VALID", group=2),
    dict(group=4, pads=[1, 1, 1, 1]),
]
TRANSPOSED = [
    dict(),
    dict(strides=[2, 3], pads=[1, 0, 2, 1], output_padding=[1, 2], dilations=[2, 1]),
    dict(strides=[2, 2], output_shape=[12, 9], group=2),
    dict(strides=[3, 2], auto_pad="SAME_UPPER"),
    dict(strides=[2, 3], auto_pad="SAME_LOWER"),
    dict(strides=[2, 2], pads=[3, 3, 3, 3]),
]


def compare(b, output, *shape):
    """The one Gemm of a float32 model, whose result equals onnxruntime's to float32."""
    x = b.rng.normal(size=shape).astype(np.float32)
    graph = equal_to_runtime(b, output, [x], tolerance=1e-4)
    [gemm] = [node for node in graph.nodes if isinstance(node, Gemm)]
    return gemm


@pytest.mark.parametrize("attributes", CONV)
def test_conv(attributes):
    b = Builder(seed=5)
    x = b.input("x", [2, 4, 6, 7])
    w = b.weights(8, 4 // attributes.get("group", 1), 3, 2)
    compare(b, b.node("Conv", x, w, b.weights(8), **attributes), 2, 4, 6, 7)


@pytest.mark.parametrize("attributes", TRANSPOSED)
def test_conv_transpose(attributes):
    b = Builder(seed=6)
    x = b.input("x", [2, 4, 6, 5])
    gemm = compare(b, b.node("ConvTranspose", x, b.weights(4, 3, 3, 2), **attributes), 2, 4, 6, 5)
    assert gemm.window.spread == tuple(attributes.get("strides", (1, 1)))


@pytest.mark.parametrize("kind, attributes", [
    ("Conv", dict(pads=[2, 1], strides=[2], dilations=[2])),
    ("Conv", dict(auto_pad="SAME_LOWER", strides=[2])),
    ("ConvTranspose", dict(strides=[2], pads=[1, 0], output_padding=[1])),
])
def test_one_axis(kind, attributes):
    b = Builder(seed=7)
    x = b.input("x", [1, 4, 11])
    gemm = compare(b, b.node(kind, x, b.weights(4, 4, 3), **attributes), 1, 4, 11)
    assert gemm.window.kernel == (1, 3)


@pytest.mark.parametrize("attributes", CONV)
@pytest.mark.parametrize("x_type, w_type", [(np.uint8, np.int8), (np.int8, np.int8)])
def test_qlinear_conv(attributes, x_type, w_type):
    """Zero points of both operands, per channel; the padding is the zero point of x."""
    require("onnx", "onnxruntime")
    b = Builder(seed=8)
    x = b.input("x", [2, 4, 6, 7], x_type)
    limits = np.iinfo(w_type)
    w = b.rng.integers(limits.min, limits.max, (8, 4 // attributes.get("group", 1), 3, 2), w_type)
    y = b.node(
        "QLinearConv", x, np.float32(0.02), x_type(23), w,
        b.rng.uniform(0.01, 0.03, 8).astype(np.float32), np.zeros(8, w_type),
        np.float32(0.9), x_type(60), b.rng.integers(-3000, 3000, 8, np.int32), **attributes,
    )
    data = b.bytes(y, dtype=x_type)
    graph = load(data, "net.onnx")
    assert [type(node) for node in graph.nodes] == [Gemm]
    limits = np.iinfo(x_type)
    x = b.rng.integers(limits.min, limits.max, (2, 4, 6, 7), x_type, endpoint=True)
    values = run_graph(graph, [x], mode="onnx")
    [expected] = run_runtime(data, [x])
    assert np.array_equal(values[graph.outputs[0]], expected)
    assert len(np.unique(expected)) > 30
