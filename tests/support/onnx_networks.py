"""Small quantized CNNs of ONNX: made by the quantizer, and of operators that end in QLinear."""

import numpy as np
from onnx_models import Builder

from weft.models.onnx.quantize import Feeds, prepare, quantize

__all__ = ["qdq", "qlinear", "random_cnn", "random_inputs", "residual"]


def residual(average=False):
    """Strides, padding, a depthwise layer, an addition, groups, and a matrix product at the end.

    The map before Flatten has several pixels, so that the order of the weights counts. onnxruntime
    adds up an average of the form QDQ in float32, so its results next to ties may differ.
    """
    b = Builder(seed=5)
    x = b.input("x", ["n", 3, 12, 10])
    y = b.node("Relu", b.node("Conv", x, b.weights(8, 3, 3, 3), b.weights(8), pads=[1, 1, 1, 1],
                              strides=[2, 2]))
    z = b.node("Conv", y, b.weights(8, 1, 3, 3), b.weights(8), pads=[1, 1, 1, 1], group=8)
    z = b.node("Clip", z, np.float32(0), np.float32(0.7))
    z = b.node("Conv", z, b.weights(8, 8, 1, 1), b.weights(8))
    y = b.node("Relu", b.node("Add", z, y))
    y = b.node("HardSwish", b.node("Conv", y, b.weights(6, 4, 3, 2), b.weights(6), group=2))
    if average:
        y = b.node("AveragePool", y, kernel_shape=[2, 2], strides=[2, 1])
    k = 36 if average else 96
    return b, b.node("Gemm", b.node("Flatten", y), b.weights(10, k), b.weights(10), transB=1)


def random_cnn(seed):
    """A random CNN of float32 without averages, and the shape of its input without the batch.

    It has all that changes the order of values: joins, flattened maps, maps as results, and
    operators of the host between layers.
    """
    b, rng = Builder(seed=seed), np.random.default_rng(seed)
    shape = int(rng.integers(1, 5)), int(rng.integers(5, 12)), int(rng.integers(4, 12))
    maps = [(b.input("x", [1, *shape]), shape)]

    def conv(x, size, channels, **more):
        kernel, stride = (rng.integers(1, most, 2).tolist() for most in (4, 3))
        pads = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
        if rng.integers(2):  # the size stays
            stride, pads = [1, 1], [*(k // 2 for k in kernel), *((k - 1) // 2 for k in kernel)]
        group = more.get("group", 1)
        y = b.node("Conv", x, b.weights(channels, size[0] // group, *kernel), b.weights(channels),
                   pads=pads, strides=stride, **more)
        out = [(n + a + e - k) // s + 1 for n, a, e, k, s in zip(
            size[1:], pads[:2], pads[2:], kernel, stride, strict=True
        )]
        return y, (channels, *out)

    def activation(y):
        kind = rng.choice(["", "Relu", "Clip", "Sigmoid", "LeakyRelu", "SiLU"])
        if kind == "Clip":
            return b.node("Clip", y, np.float32(0), np.float32(0.8))
        if kind == "SiLU":
            return b.node("Mul", y, b.node("Sigmoid", y))
        return b.node(kind, y) if kind else y

    for _ in range(int(rng.integers(2, 6))):
        x, size = maps[-1]
        kind = rng.choice(["conv", "conv", "depthwise", "add", "join", "pool"])
        if kind == "conv":
            y, out = conv(x, size, 4 * int(rng.integers(1, 4)))
        elif kind == "depthwise":
            y, out = conv(x, size, size[0], group=size[0])
        elif kind == "pool" and min(size[1:]) > 2:
            y = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1])
            out = size[0], size[1] - 1, size[2] - 1
        else:
            others = [entry for entry in maps[:-1] if entry[1] == size and entry[0] != "x"]
            if not others or len(maps) < 3:
                y = b.node("Conv", x, b.weights(8, size[0], 1, 1), b.weights(8))
                out = 8, *size[1:]
            elif kind == "add":
                y, out = b.node("Add", x, others[0][0]), size
            else:
                y, out = b.node("Concat", x, others[0][0], axis=1), (2 * size[0], *size[1:])
        maps.append((activation(y), out))
    x, size = maps[-1]
    if rng.integers(3) == 0:
        return b, x, shape
    w = b.weights(6, int(np.prod(size)))
    return b, b.node("Gemm", b.node("Flatten", x), w, b.weights(6), transB=1), shape


def qdq(model, y, shape, seed=6):
    """The quantized file of a `Builder` with one input of ``shape``."""
    data = prepare(model.bytes(y), "net.onnx")
    samples = np.random.default_rng(seed).normal(0, 1, (16, *shape)).astype(np.float32)
    return quantize(data, "net.onnx", Feeds({"x": samples}, data, "samples"))


def qlinear(dtype, seed=7):
    """QLinearConv, QLinearAdd, QLinearGlobalAveragePool, QLinearSigmoid and QGemm."""
    b = Builder(seed=seed)
    zero = {np.int8: (-3, 5, 0, -128), np.uint8: (120, 131, 128, 0)}[dtype]
    zero = [np.array(z, dtype) for z in zero]
    scale = [np.float32(s) for s in (0.02, 0.031, 0.0456, 0.0039)]

    def conv(x, before, after, channels, each, kernel, **attributes):
        weights = b.rng.integers(-127, 128, (channels, each, *kernel)).astype(np.int8)
        scales = (b.rng.uniform(0.5, 1, channels) * 0.012 / np.sqrt(each * np.prod(kernel)))
        bias = b.rng.integers(-800, 800, channels).astype(np.int32)
        return b.node(
            "QLinearConv", x, *before, weights, scales.astype(np.float32),
            np.zeros(channels, np.int8), *after, bias, **attributes,
        )

    ends = [*zip(scale, zero, strict=True)]
    x = b.input("x", [1, 3, 9, 8], dtype)
    y = conv(x, ends[0], ends[1], 8, 3, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    z = conv(y, ends[1], ends[2], 8, 1, (3, 3), pads=[1, 1, 1, 1], group=8)
    y = b.node("QLinearAdd", z, *ends[2], y, *ends[1], *ends[0], domain="com.microsoft")
    y = conv(y, ends[0], ends[2], 12, 8, (1, 1))
    y = b.node("QLinearSigmoid", y, *ends[2], *ends[3], domain="com.microsoft")
    means = b.node(
        "QLinearGlobalAveragePool", y, *ends[3], *ends[1], domain="com.microsoft", channels_last=0
    )
    w = b.rng.integers(-127, 128, (10, 12)).astype(np.int8)
    y = b.node(
        "QGemm", b.node("Flatten", means), *ends[1], w, np.float32(0.004), np.int8(0),
        b.rng.integers(-500, 500, 10).astype(np.int32), *ends[0], domain="com.microsoft", transB=1,
    )
    return b.bytes(y, dtype=dtype)


def random_inputs(program, count=4, seed=8):
    """Inputs of a program, for ``count`` inferences."""
    rng, tensor = np.random.default_rng(seed), program.tensors[program.inputs[0]]
    shape = (count, *tensor.shape[1:])
    if tensor.dtype == np.float32:
        return rng.normal(0, 1, shape).astype(np.float32)
    limits = np.iinfo(tensor.dtype)
    return rng.integers(limits.min, limits.max, shape, tensor.dtype, endpoint=True)
