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
