"""The digits networks in all modes: every byte of all test images equals that of a runtime."""

from pathlib import Path

import numpy as np
import pytest
from onnx_models import Builder, require

from weft.config import Config
from weft.demo import Network
from weft.host.golden import GoldenTransport
from weft.network.loading import load
from weft.network.oracles import expected

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SIZE = dict(rows=4, cols=4, depth=4, a_words=512, b_words=512)


@pytest.fixture(scope="module")
def digits():
    return Network.load()


def outputs(network, x, mode, oracle):
    """The outputs of all inferences on a core, and in the runtime of the mode."""
    program = network.compile(Config(requantize=mode, **SIZE))
    assert program.mode == mode
    with program.open(GoldenTransport(program.target.config)) as session:
        y = session(x)
    return y.reshape(len(x), -1), expected(oracle, network, program, x)[0].reshape(len(x), -1)


@pytest.mark.parametrize("name, share", [("digits_cnn", 0.984), ("digits_mlp", 0.973)])
@pytest.mark.parametrize("mode, oracle, runtime", [
    ("tflite", "tflm", "tflite_micro"), ("single", "litert", "ai_edge_litert"),
])
def test_tflite_files(digits, name, share, mode, oracle, runtime):
    require("tflite", runtime)
    network = load(EXAMPLES / f"{name}.tflite")
    given = network.graph.tensors[network.graph.inputs[0]]
    scale, zero = given.quantization.scale[0], given.quantization.zero[0]
    x = np.clip(np.rint(digits.images / digits.image_max / scale) + zero, -128, 127)
    x = x.astype(np.int8).reshape(len(digits.images), *given.shape[1:])
    y, wanted = outputs(network, x, mode, oracle)
    np.testing.assert_array_equal(y, wanted)
    assert np.mean(y.argmax(axis=1) == digits.labels) > share


def test_onnx_file(digits):
    """The MLP as an ONNX file; its ReLU is the lower limit of int8."""
    require("onnx", "onnxruntime")
    b = Builder()
    y = b.input("x", ["n", digits.layers[0].k], np.int8)
    for layer in digits.layers:
        assert layer.low == -128
        y = b.node(
            "QGemm", y, np.float32(layer.x_scale), np.int8(layer.x_zero_point), layer.weights,
            layer.w_scale, np.zeros(layer.n, np.int8), layer.bias, np.float32(layer.y_scale),
            np.int8(layer.y_zero_point), domain="com.microsoft", transB=1,
        )
    network = load(b.bytes(y, dtype=np.int8), "digits.onnx")
    x = digits.encode(digits.images)
    y, wanted = outputs(network, x, "onnx", "ort")
    np.testing.assert_array_equal(y, wanted)
    assert np.mean(y.argmax(axis=1) == digits.labels) > 0.97


def cnn_file(tensors):
    """The CNN as an ONNX file, from the ``tensors`` of its TFLite file."""
    known = {tensor.name: tensor for tensor in tensors}

    def scale(name):
        return np.float32(known[name].quantization.scale[0])

    def zero(name):
        return np.int8(known[name].quantization.zero[0])

    def quantized(name):
        return scale(name), zero(name)

    def convolution(source, name, weights, **attributes):
        count = len(weights)
        return b.node(
            "QLinearConv", at[source], *quantized(source), weights,
            known[f"{name}_weights"].quantization.scale, np.zeros(count, np.int8),
            *quantized(name), known[f"{name}_bias"].data, **attributes,
        )

    b = Builder()
    at = {"image": b.input("x", ["n", 1, 8, 8], np.int8)}
    # From OHWI, or 1HWO in the depthwise convolution, to OIHW.
    first, depthwise, pointwise = (
        known[f"{name}_weights"].data.transpose(axes) for name, axes in (
            ("conv", (0, 3, 1, 2)), ("depthwise", (3, 0, 1, 2)), ("pointwise", (0, 3, 1, 2)),
        )
    )
    pads = [1, 1, 1, 1]
    at["conv"] = convolution("image", "conv", first, pads=pads)
    at["depthwise"] = convolution("conv", "depthwise", depthwise, pads=pads, group=len(depthwise))
    at["pointwise"] = convolution("depthwise", "pointwise", pointwise)
    y = b.node(
        "QLinearAdd", at["conv"], *quantized("conv"), at["pointwise"], *quantized("pointwise"),
        *quantized("add"), domain="com.microsoft",
    )
    y = b.node(
        "QLinearAveragePool", y, *quantized("add"), *quantized("pool"), domain="com.microsoft",
        kernel_shape=[2, 2], strides=[2, 2],
    )
    y = b.node("Flatten", b.node("Transpose", y, perm=[0, 2, 3, 1]))
    weights = known["dense_weights"]
    y = b.node(
        "QGemm", y, *quantized("pool"), weights.data, weights.quantization.scale,
        np.zeros(len(weights.data), np.int8), known["dense_bias"].data, *quantized("logits"),
        domain="com.microsoft", transB=1,
    )
    return b.bytes(y, dtype=np.int8)


def test_onnx_file_of_the_cnn(digits):
    require("tflite", "onnx", "onnxruntime")
    tensors = load(EXAMPLES / "digits_cnn.tflite").graph.tensors
    network = load(cnn_file(tensors), "digits_cnn.onnx")
    scale, zero = tensors[0].quantization.scale[0], tensors[0].quantization.zero[0]
    x = np.clip(np.rint(digits.images / digits.image_max / scale) + zero, -128, 127)
    x = x.astype(np.int8).reshape(-1, 1, 8, 8)
    y, wanted = outputs(network, x, "onnx", "ort")
    np.testing.assert_array_equal(y, wanted)
    assert np.mean(y.argmax(axis=1) == digits.labels) > 0.98
