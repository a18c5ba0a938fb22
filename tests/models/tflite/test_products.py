"""Operators that become matrix products, in numpy, against TFLite Micro."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from products import integers
from rejects import rejects
from tflite_files import T, build, micro

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.tflite import load

FUSED = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}
SAME, VALID = 0, 1
OPTIONS = {
    "FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "TRANSPOSE_CONV": "TransposeConvOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
}


def model(name, tensors, inputs, options, fed=("x",)):
    return build(
        tensors, [(name, inputs, ["y"], (OPTIONS[name], options))], list(fed), ["y"]
    )


def check(data, *x):
    """All results in numpy equal TFLite Micro's, and are not trivial."""
    graph = load(data, "net")
    assert [type(node) for node in graph.nodes] == [Gemm]
    y = run_graph(graph, x)[graph.outputs[0]]
    [expected] = micro(data, x)
    assert np.array_equal(y, expected)
    assert len(np.unique(y)) >= min(3, y.size // 8)
    return graph.nodes[0]


def scales(rng, count):
    return rng.uniform(0.002, 0.02, count).astype(np.float32)


@pytest.mark.parametrize("fused", FUSED)
def test_fully_connected(rng, fused):
    for channels, zero in ((1, 5), (12, 0)):
        tensors = {
            "x": T((3, 40), scale=0.05, zero=-7),
            "w": T(data=integers(rng, np.int8, 12, 40), scale=scales(rng, channels), zero=zero),
            "b": T(data=rng.integers(-3000, 3000, 12).astype(np.int32)),
            "y": T((3, 12), scale=0.25, zero=-20),
        }
        data = model(
            "FULLY_CONNECTED", tensors, ["x", "w", "b"], {"fusedActivationFunction": FUSED[fused]}
        )
        check(data, integers(rng, np.int8, 3, 40))


@pytest.mark.parametrize("shape, keep", [
    ((2, 3, 4, 10), False), ((2, 3, 40), True), ((40,), False), ((1, 1, 1, 40), False),
])
@pytest.mark.parametrize("bias", ["absent", "minus one"])
def test_fully_connected_flattens_its_input(rng, shape, keep, bias):
    rows = int(np.prod(shape)) // 40
    tensors = {
        "x": T(shape, scale=0.05, zero=-7),
        "w": T(data=integers(rng, np.int8, 12, 40), scale=0.01),
        "y": T((*shape[:-1], 12) if keep else (rows, 12), scale=0.25, zero=-20),
    }
    inputs = ["x", "w"] + [None] * (bias != "absent")
    data = model("FULLY_CONNECTED", tensors, inputs, {"keepNumDims": keep})
    check(data, integers(rng, np.int8, *shape))


def conv(rng, shape, weights, out, axis=0, dtype=np.int8, bias=np.int32, **options):
    channels = weights[axis]
    tensors = {
        "x": T(shape, dtype, scale=0.05, zero=-7 if dtype == np.int8 else 0),
        "w": T(data=integers(rng, np.int8, *weights), scale=scales(rng, channels), axis=axis),
        "b": T(data=rng.integers(-900, 900, channels).astype(bias or np.int32)),
        "y": T(out, dtype, scale=0.2 if dtype == np.int8 else 0.02, zero=-20 * (dtype == np.int8)),
    }
    name = "DEPTHWISE_CONV_2D" if axis else "CONV_2D"
    if axis:
        options.setdefault("depthMultiplier", weights[3] // shape[3])
    options = {"dilationHFactor": 1, "dilationWFactor": 1, **options}
    data = model(name, tensors, ["x", "w"] + ["b"] * (bias is not None), options)
    return check(data, integers(rng, dtype, *shape))


def sizes(size, kernel, stride, dilation, padding):
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    less = [1, 1] if padding == SAME else reach
    return [(n + s - m) // s for n, s, m in zip(size, stride, less, strict=True)]


GEOMETRY = list(itertools.product([(1, 1), (2, 3), (3, 2)], [(1, 1), (2, 2), (1, 3)]))


@pytest.mark.parametrize("padding", [SAME, VALID])
def test_conv_2d_of_every_geometry(rng, padding):
    for (stride, dilation), kernel in itertools.product(GEOMETRY, [(1, 1), (3, 2), (4, 3)]):
        if max(stride) > 1 and max(dilation) > 1:
            continue
        out = sizes((11, 12), kernel, stride, dilation, padding)
        conv(
            rng, (2, 11, 12, 3), (5, *kernel, 3), (2, *out, 5), strideH=stride[0],
            strideW=stride[1], dilationHFactor=dilation[0], dilationWFactor=dilation[1],
            padding=padding, fusedActivationFunction=1,
        )


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_depthwise_conv_2d(rng, padding, depth):
    for stride, dilation in GEOMETRY:
        out = sizes((11, 12), (3, 2), stride, dilation, padding)
        node = conv(
            rng, (1, 11, 12, 4), (1, 3, 2, 4 * depth), (1, *out, 4 * depth), axis=3,
            strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0],
            dilationWFactor=dilation[1], padding=padding,
        )
        assert node.weights.shape == (4, 6, depth)


def test_grouped_conv_2d(rng):
    node = conv(
        rng, (1, 6, 6, 6), (9, 3, 3, 2), (1, 6, 6, 9), strideH=1, strideW=1, padding=SAME
    )
    assert node.weights.shape == (3, 18, 3)


@pytest.mark.parametrize("name, bias", [
    ("CONV_2D", None), ("CONV_2D", np.int32), ("CONV_2D", np.int64),
    ("DEPTHWISE_CONV_2D", None), ("DEPTHWISE_CONV_2D", np.int64),
])
def test_int16_activations(rng, name, bias):
    axis, weights = (0, (5, 3, 3, 4)) if name == "CONV_2D" else (3, (1, 3, 3, 4))
    node = conv(
        rng, (1, 8, 8, 4), weights, (1, 8, 8, weights[axis]), axis=axis, dtype=np.int16,
        bias=bias, strideH=1, strideW=1, padding=SAME,
    )
    assert node.requantization.wide == (bias is not np.int32)


@pytest.mark.parametrize("bias", [np.int64, np.int32, None])
def test_int16_fully_connected(rng, bias):
    tensors = {
        "x": T((3, 40), "int16", scale=0.001),
        "w": T(data=integers(rng, np.int8, 12, 40), scale=0.01),
        "y": T((3, 12), "int16", scale=0.002),
    }
    if bias:
        tensors["b"] = T(data=rng.integers(-(1 << 24), 1 << 24, 12).astype(bias))
    data = model("FULLY_CONNECTED", tensors, ["x", "w"] + ["b"] * bool(bias), {})
    check(data, integers(rng, np.int16, 3, 40))


@pytest.mark.parametrize("name", ["DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"])
def test_a_bias_of_32_bits_that_runtimes_read_as_64_bits(name):
    tensors = {
        "s": T(data=np.array([1, 4, 4, 4], np.int32)), "x": T((1, 4, 4, 4), "int16", scale=0.1),
        "w": T(data=np.ones((1, 1, 1, 4), np.int8), scale=0.1, axis=3),
        "b": T(data=np.ones(4, np.int32)), "y": T((1, 4, 4, 4), "int16", scale=0.1),
    }
    options = {"strideH": 1, "strideW": 1, "padding": VALID}
    inputs = ["x", "w", "b"]
    if name == "TRANSPOSE_CONV":
        tensors["w"] = T(data=np.ones((4, 1, 1, 4), np.int8), scale=0.1)
        inputs = ["s", "w", "x", "b"]
    else:
        options |= {"dilationHFactor": 1, "dilationWFactor": 1, "depthMultiplier": 1}
    text = "bias must be int64 for activations of int16, not int32: the runtimes read 64 bits"
    with rejects(ModelError, f"net: operator 0 ({name}, 'y'): {text}"):
        load(model(name, tensors, inputs, options), "net")


def test_a_depth_multiplier_that_the_weights_do_not_have():
    tensors = {
        "x": T((1, 4, 4, 3), scale=0.1), "y": T((1, 4, 4, 6), scale=0.1),
        "w": T(data=np.ones((1, 1, 1, 6), np.int8), scale=0.1, axis=3),
    }
    options = {
        "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1,
        "depthMultiplier": 1,
    }
    text = "the depth multiplier must be 6 / 3, not 1"
    with rejects(ModelError, f"net: operator 0 (DEPTHWISE_CONV_2D, 'y'): {text}"):
        load(model("DEPTHWISE_CONV_2D", tensors, ["x", "w"], options), "net")


def test_empty_products():
    tensors = {
        "x": T((0, 4), scale=0.1), "w": T(data=np.ones((2, 4), np.int8), scale=0.1),
        "y": T((0, 2), scale=0.1),
    }
    text = "input must not be empty, not (0, 4)"
    with rejects(ModelError, f"net: operator 0 (FULLY_CONNECTED, 'y'): {text}"):
        load(model("FULLY_CONNECTED", tensors, ["x", "w"], {}), "net")


@pytest.mark.parametrize("w_zero", [128, 7])
def test_uint8_equals_int8_with_other_zero_points(rng, w_zero):
    """TFLite Micro has no uint8: the model with all values and zero points lower by 128 has."""
    x, w = integers(rng, np.uint8, 3, 40), integers(rng, np.uint8, 12, 40)
    results = []
    for less, kind in ((0, np.uint8), (128, np.int8)):
        tensors = {
            "x": T((3, 40), kind, scale=0.05, zero=100 - less),
            "w": T(data=(w.astype(int) - less).astype(kind), scale=0.01, zero=w_zero - less),
            "y": T((3, 12), kind, scale=2.0, zero=110 - less),
        }
        options = {"fusedActivationFunction": FUSED["relu"]}
        data = model("FULLY_CONNECTED", tensors, ["x", "w"], options)
        given = (x.astype(int) - less).astype(kind)
        if less:
            results.append(micro(data, [given])[0].astype(int) + less)
        else:
            graph = load(data, "net")
            results.append(run_graph(graph, [given])[graph.outputs[0]])
    assert np.array_equal(*results) and len(np.unique(results)) > 5


def test_int4_weights(rng):
    w = rng.integers(-8, 8, (5, 15)).astype(np.int8)
    tensors = {
        "x": T((3, 15), scale=0.05, zero=-7), "w": T(dtype="int4", data=w, scale=0.1),
        "y": T((3, 5), scale=0.25),
    }
    node = check(model("FULLY_CONNECTED", tensors, ["x", "w"], {}), integers(rng, np.int8, 3, 15))
    assert np.array_equal(node.weights[0], w.T)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_transpose_conv(rng, padding, dtype):
    zero = dtype == np.int8
    for kernel, stride in itertools.product([(3, 3), (2, 4), (1, 2)], [(1, 1), (2, 2), (3, 1)]):
        given = 5, 4
        out = [
            n * s if padding == SAME else (n - 1) * s + k
            for n, s, k in zip(given, stride, kernel, strict=True)
        ]
        tensors = {
            "s": T(data=np.array([2, *out, 6], np.int32)),
            "w": T(data=integers(rng, np.int8, 6, *kernel, 3), scale=scales(rng, 6)),
            "x": T((2, *given, 3), dtype, scale=0.05, zero=9 * zero),
            "y": T((2, *out, 6), dtype, scale=0.1 if zero else 0.02, zero=-9 * zero),
        }
        options = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
        inputs = ["s", "w", "x"]
        if dtype == np.int16:  # TFLite Micro reads the type of the bias
            tensors["b"] = T(data=rng.integers(-9000, 9000, 6))
            inputs.append("b")
        data = model("TRANSPOSE_CONV", tensors, inputs, options)
        check(data, integers(rng, dtype, 2, *given, 3))


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_transpose_conv_with_a_fused_activation(rng, dtype):
    zero = dtype == np.int8
    for activation in FUSED.values():
        tensors = {
            "s": T(data=np.array([1, 6, 5, 4], np.int32)),
            "w": T(data=integers(rng, np.int8, 4, 2, 1, 3), scale=scales(rng, 4)),
            "x": T((1, 3, 5, 3), dtype, scale=0.05 if zero else 1e-5, zero=9 * zero),
            "b": T(data=rng.integers(-9000, 9000, 4).astype(np.int32 if zero else np.int64)),
            "y": T((1, 6, 5, 4), dtype, scale=0.1 if zero else 1e-3, zero=-9 * zero),
        }
        options = {
            "padding": SAME, "strideH": 2, "strideW": 1, "fusedActivationFunction": activation,
        }
        data = model("TRANSPOSE_CONV", tensors, ["s", "w", "x", "b"], options)
        check(data, integers(rng, dtype, 1, 3, 5, 3))


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_batch_matmul(rng, adj_x, adj_y, dtype):
    zero = dtype == np.int8
    for batch_x, batch_y in (((2, 3), (2, 3)), ((2, 3), (1, 3)), ((3,), (3,)), ((), ())):
        a = (*batch_x, 7, 4) if adj_x else (*batch_x, 4, 7)
        b = (*batch_y, 5, 7) if adj_y else (*batch_y, 7, 5)
        tensors = {
            "x": T(a, dtype, scale=0.05, zero=3 * zero),
            "b": T(b, dtype, scale=0.04, zero=-4 * zero),
            "y": T((*np.broadcast_shapes(batch_x, batch_y), 4, 5), dtype,
                   scale=0.8 if zero else 30, zero=5 * zero),
        }
        options = {"adjX": adj_x, "adjY": adj_y}
        data = model("BATCH_MATMUL", tensors, ["x", "b"], options, ("x", "b"))
        check(data, integers(rng, dtype, *a), integers(rng, dtype, *b))
