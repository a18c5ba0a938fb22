"""The digits networks in all modes: every byte of all test images equals that of a runtime."""

import numpy as np
import pytest
from digits import CNN, MLP
from onnx_models import Builder, require

from weft.config import Config
from weft.demo import digits_images
from weft.host.emulated import GoldenTransport
from weft.models.loading import load
from weft.models.oracles import answers
from weft.models.program_session import quantized

SIZE = dict(rows=4, cols=4, depth=4, a_words=512, b_words=512)


def outputs(network, x, mode, oracle):
    """The outputs of all inferences on a core, and in the runtime of the mode."""
    program = network.compile(Config(requantize=mode, **SIZE))
    assert program.mode == mode
    with program.open(GoldenTransport(program.target.array)) as session:
        y = session(x)
    [*_, answer] = answers(oracle, network, program, x)
    return y.reshape(len(x), -1), answer.outputs[0].reshape(len(x), -1)


def quantized_images(tensors):
    """The test images as the first of ``tensors``, and their labels."""
    images, labels = digits_images()
    x = quantized(images, tensors[0], "tflite")
    return x.reshape(len(x), *tensors[0].shape[1:]), labels


@pytest.mark.parametrize("path, share", [(CNN, 0.984), (MLP, 0.973)], ids=["cnn", "mlp"])
@pytest.mark.parametrize("mode, oracle, runtime", [
    ("tflite", "tflm", "tflite_micro"), ("single", "litert", "ai_edge_litert"),
])
def test_tflite_files(path, share, mode, oracle, runtime):
    require("tflite", runtime)
    network = load(path)
    x, labels = quantized_images(network.graph.tensors)
    y, wanted = outputs(network, x, mode, oracle)
    np.testing.assert_array_equal(y, wanted)
    assert np.mean(y.argmax(axis=1) == labels) > share


class Tensors:
    """The tensors of a TFLite file by name, and a builder of an ONNX file from them."""

    def __init__(self, tensors):
        self.known = {tensor.name: tensor for tensor in tensors}
        self.builder = Builder()

    def steps(self, name):
        """Scale and zero point of a tensor."""
        given = self.known[name].quantization
        return np.float32(given.scale[0]), np.int8(given.zero[0])

    def gemm(self, y, source, name, result):
        """A fully connected layer with its ReLU, which is a limit of int8."""
        weights = self.known[f"{name}_weights"]
        return self.builder.node(
            "QGemm", y, *self.steps(source), weights.data, weights.quantization.scale,
            np.zeros(len(weights.data), np.int8), self.known[f"{name}_bias"].data,
            *self.steps(result), domain="com.microsoft", transB=1,
        )

    def convolution(self, y, source, name, axes, **attributes):
        """A convolution; ``axes`` brings the weights into the order OIHW."""
        weights = self.known[f"{name}_weights"]
        data = weights.data.transpose(axes)
        return self.builder.node(
            "QLinearConv", y, *self.steps(source), data, weights.quantization.scale,
            np.zeros(len(data), np.int8), *self.steps(name), self.known[f"{name}_bias"].data,
            **attributes,
        )


def mlp_file(tensors):
    """The MLP as an ONNX file."""
    file = Tensors(tensors)
    y = file.builder.input("x", ["n", 64], np.int8)
    for n in range(3):
        y = file.gemm(y, f"x{n}", f"L{n}", f"x{n + 1}")
    return file.builder.bytes(y, dtype=np.int8)


def cnn_file(tensors):
    """The CNN as an ONNX file."""
    file = Tensors(tensors)
    node, steps = file.builder.node, file.steps
    x = file.builder.input("x", ["n", 1, 8, 8], np.int8)
    pads = [1, 1, 1, 1]
    x = file.convolution(x, "image", "conv", (0, 3, 1, 2), pads=pads)
    y = file.convolution(x, "conv", "depthwise", (3, 0, 1, 2), pads=pads, group=12)
    y = file.convolution(y, "depthwise", "pointwise", (0, 3, 1, 2))
    y = node(
        "QLinearAdd", x, *steps("conv"), y, *steps("pointwise"), *steps("add"),
        domain="com.microsoft",
    )
    y = node(
        "QLinearAveragePool", y, *steps("add"), *steps("pool"), domain="com.microsoft",
        kernel_shape=[2, 2], strides=[2, 2],
    )
    y = node("Flatten", node("Transpose", y, perm=[0, 2, 3, 1]))
    return file.builder.bytes(file.gemm(y, "pool", "dense", "logits"), dtype=np.int8)


@pytest.mark.parametrize("path, file, shape, share", [
    (CNN, cnn_file, (1, 8, 8), 0.98), (MLP, mlp_file, (64,), 0.97),
], ids=["cnn", "mlp"])
def test_onnx_files(path, file, shape, share):
    require("tflite", "onnx", "onnxruntime")
    tensors = load(path).graph.tensors
    x, labels = quantized_images(tensors)
    network = load(file(tensors), "digits.onnx")
    y, wanted = outputs(network, x.reshape(-1, *shape), "onnx", "ort")
    np.testing.assert_array_equal(y, wanted)
    assert np.mean(y.argmax(axis=1) == labels) > share
