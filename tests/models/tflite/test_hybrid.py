"""Products of float32 and int8 weights (dynamic range quantization), bit for bit as LiteRT's."""

import numpy as np
import pytest
from graph_runner import run_graph
from network_cores import network_core_config
from tflite_files import T, build

from weft.config import Config
from weft.host import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.errors import UnfitError
from weft.models.exactness import exactness_of
from weft.models.ir import Gemm
from weft.models.loading import load as load_file
from weft.models.network_core.compiler import compile_network_core
from weft.models.report.placement import placement_line, reasons_of
from weft.models.target import target_of
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

F32, SAME, VALID = np.float32, 0, 1
CONFIG = Config(rows=2, cols=4, depth=4)
PLAIN = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
# Bits of the first results of each layer of `three_layers`, in LiteRT 2.3.0.
RECORDED = {
    "conv": [0, 0, 0x40DFA453, 0x40340D92, 0x40C53D29, 0, 0, 0, 0, 0x3F12D0E5, 0x3F9F9A7C,
             0x40A8A587],
    "depthwise": [0x41A5887E, 0xC1C579AB, 0x41E0D3CF, 0x3FE93A95, 0x4202EDEA, 0xC1BC1441,
                  0x41E0FE4E, 0x41C229BE, 0xC1289FC3, 0x3D7CFE78, 0x401C3CC6, 0x40980598],
    "y": [0xC3BF0D01, 0xC2B331D7, 0x43910AD5, 0x44099E21],
}


def series(shape, step, start, modulus):
    """Integers that repeat, for weights and inputs."""
    return ((np.arange(np.prod(shape)) * step + start) % modulus).reshape(shape)


def int8(shape, step, start):
    return (series(shape, step, start, 256) - 128).astype(np.int8)


X = ((series((1, 4, 4, 2), 37, 5, 101) - 40) / 16).astype(F32)


def three_layers(output="y"):
    """A convolution, a depthwise one and a fully connected layer."""
    tensors = {
        "x": T(X.shape, "float32"),
        "w": T(data=int8((3, 3, 3, 2), 29, 3), scale=[0.01, 0.02, 0.03]),
        "b": T(data=F32([0.5, -0.25, 1])), "conv": T((1, 4, 4, 3), "float32"),
        "d": T(data=int8((1, 3, 3, 3), 53, 7), scale=[0.04, 0.02, 0.01], axis=3),
        "c": T(data=F32([0, 1, -1])), "depthwise": T((1, 4, 4, 3), "float32"),
        "v": T(data=int8((4, 48), 91, 11), scale=0.05), "y": T((1, 4), "float32"),
    }
    operators = [
        ("CONV_2D", ["x", "w", "b"], ["conv"], (
            "Conv2DOptions", PLAIN | {"fusedActivationFunction": 1},
        ), 5),
        ("DEPTHWISE_CONV_2D", ["conv", "d", "c"], ["depthwise"], (
            "DepthwiseConv2DOptions", PLAIN | {"depthMultiplier": 1},
        ), 6),
        ("FULLY_CONNECTED", ["depthwise", "v"], ["y"], ("FullyConnectedOptions", {}), 9),
    ]
    return build(tensors, operators, ["x"], [output])


@pytest.mark.parametrize("output", RECORDED)
def test_every_layer_has_the_bits_of_litert(output):
    graph = load(three_layers(output), "net")
    y = run_graph(graph, [X])[graph.outputs[0]]
    bits = y.view(np.uint32).ravel()[:12].tolist()
    assert bits == RECORDED[output]


def test_products_are_on_the_core(tmp_path):
    graph = load(three_layers(), "net")
    expected = run_graph(graph, [X])[graph.outputs[0]]
    program = compile_graph(graph, CONFIG)
    assert placement_line(program).startswith(
        "net: 3 of 3 operators on Weft (100 % of 1,488 MAC); equal to TFLite Micro"
    )
    assert "3 products with float32 activations and int8 weights" in graph.notes[0]
    program.save(tmp_path / "net.weft")
    with load_file(tmp_path / "net.weft").open(GoldenTransport(CONFIG)) as session:
        y = session(np.concatenate([X, -X, X]))
    assert np.array_equal(y[:1], expected) and np.array_equal(y[2:], expected)
    assert not np.array_equal(y[1:2], expected)


def test_the_first_line_names_them():
    graph, names = load(three_layers(), "net"), "CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED"
    close = f"float32 results of {names} are close"
    single = exactness_of(graph, "single", CONFIG)
    assert single.claim == f"equal to LiteRT in mode single, but {close}"
    assert exactness_of(graph, "tflite", CONFIG).claim == (
        f"equal to TFLite Micro in mode tflite, but {close}, and not {names}: TFLite Micro has no"
        " such products, and Weft computes them as LiteRT"
    )
    assert (single.absolute, single.relative) == ((0.0,), (1 / 128,))  # a step of a row
    first = exactness_of(load(three_layers("conv"), "net"), "single", CONFIG)
    assert first.relative == (1e-5,)


def test_a_network_core_computes_their_products_one_by_one():
    with pytest.raises(UnfitError, match="its results must be of 8 bits"):
        compile_network_core(load(three_layers(), "net"), target_of(network_core_config(2, 4, 4)))
    tensors = {
        "i": T((1, 3, 3, 2), scale=0.1), "k": T(data=int8((2, 2, 2, 2), 7, 1), scale=0.1),
        "q": T((1, 2, 2, 2), scale=0.1), "f": T((1, 2, 2, 2), "float32"),
        "v": T(data=int8((4, 8), 91, 11), scale=0.05), "y": T((1, 4), "float32"),
    }
    data = build(tensors, [
        ("CONV_2D", ["i", "k"], ["q"], ("Conv2DOptions", PLAIN | {"padding": VALID}), 5),
        ("DEQUANTIZE", ["q"], ["f"], None, 2),
        ("FULLY_CONNECTED", ["f", "v"], ["y"], ("FullyConnectedOptions", {}), 9),
    ], ["i"], ["y"])
    graph, x = load(data, "net"), int8((1, 3, 3, 2), 31, 9)
    program = compile_network_core(graph, target_of(network_core_config(2, 4, 4)))
    [reason] = reasons_of(program)
    assert reason == (
        "partly on the host: FULLY_CONNECTED: its results must be of 8 bits; the core computes its"
        " products one by one, over the link"
    )
    with program.open("golden") as session:
        y = session(x)
    assert np.array_equal(y, run_graph(graph, [x])[graph.outputs[0]])


def compare(tensors, operator, x):
    """The bits of an operator in LiteRT; float32 with one rounding less may differ by 1."""
    pytest.importorskip("ai_edge_litert")
    data = build(tensors, [operator], ["x"], ["y"])
    [[expected]] = litert(data, [[x]])
    graph = load(data, "net")
    assert any(isinstance(node, Gemm) for node in graph.nodes)
    y = run_graph(graph, [x])[graph.outputs[0]]
    differences = y.view(np.int32).astype(np.int64) - expected.view(np.int32)
    assert abs(differences).max() <= 1


def rows(rng, *shape):
    """Rows of several ranges; some of one sign, or of zeros."""
    x = rng.normal(size=shape) * np.exp(3 * rng.normal(size=(*shape[:-1], 1)))
    x += rng.normal(size=(*shape[:-1], 1))
    kind = rng.integers(0, 5, (*shape[:-1], 1))
    return np.select([kind == 0, kind == 1, kind == 2], [0 * x, abs(x), -abs(x)], x).astype(F32)


def weights(rng, *shape):
    w = rng.integers(-128, 128, shape, np.int8)
    w.flat[0] = -128
    return w


def scales(rng, count):
    return rng.uniform(0.001, 0.1, count if rng.random() < 0.6 else 1)


@pytest.mark.parametrize("fused", [0, 1, 2, 3])
def test_fully_connected(rng, fused):
    sizes = [(1, 1, 1), (1, 7, 3), (5, 1, 4), *rng.integers(1, (9, 200, 40), (9, 3)).tolist()]
    for m, k, n in sizes:
        tensors = {
            "x": T((m, k), "float32"), "w": T(data=weights(rng, n, k), scale=scales(rng, n)),
            "b": T(data=rng.normal(size=n).astype(F32)), "y": T((m, n), "float32"),
        }
        options = {"fusedActivationFunction": fused, "asymmetricQuantizeInputs": bool(m % 2)}
        ins = ["x", "w", "b"][: 2 + (k + n) % 2]
        operator = "FULLY_CONNECTED", ins, ["y"], ("FullyConnectedOptions", options), 9
        compare(tensors, operator, rows(rng, m, k))


@pytest.mark.parametrize("keep", [False, True])
def test_fully_connected_of_more_axes(rng, keep):
    tensors = {
        "x": T((2, 3, 4), "float32"), "w": T(data=weights(rng, 5, 4), scale=0.1),
        "y": T((2, 3, 5) if keep else (6, 5), "float32"),
    }
    options = "FullyConnectedOptions", {"keepNumDims": keep}
    compare(tensors, ("FULLY_CONNECTED", ["x", "w"], ["y"], options, 9), rows(rng, 2, 3, 4))


def test_weights_of_4_bits(rng):
    tensors = {
        "x": T((3, 8), "float32"), "y": T((3, 6), "float32"),
        "w": T(None, "int4", rng.uniform(0.01, 0.1, 6), data=rng.integers(-8, 8, (6, 8))),
    }
    operator = "FULLY_CONNECTED", ["x", "w"], ["y"], ("FullyConnectedOptions", {}), 12
    compare(tensors, operator, rows(rng, 3, 8))


def window(rng, kernel):
    """Options of a window, and the sizes of its results for maps of 9 x 7."""
    stride, dilation, padding = rng.integers(1, 3), 1 + (rng.random() < 0.3), rng.integers(0, 2)
    options = {
        "strideH": int(stride), "strideW": int(stride), "dilationHFactor": dilation,
        "dilationWFactor": dilation, "padding": int(padding),
        "fusedActivationFunction": int(rng.integers(0, 4)),
    }
    reach = (kernel - 1) * dilation + 1
    sizes = [-(-n // stride) if padding == SAME else (n - reach) // stride + 1 for n in (9, 7)]
    return options, [int(n) for n in sizes]


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv_2d(rng, kernel, groups):
    """A row is an image; without a window (1 x 1, no groups, no stride) it is a pixel."""
    for batch in (1, 1, 2, 3):
        depth, n = (groups * int(size) for size in rng.integers(1, 9, 2))
        options, sizes = window(rng, kernel)
        tensors = {
            "x": T((batch, 9, 7, depth), "float32"),
            "w": T(data=weights(rng, n, kernel, kernel, depth // groups), scale=scales(rng, n)),
            "b": T(data=rng.normal(size=n).astype(F32)), "y": T((batch, *sizes, n), "float32"),
        }
        operator = "CONV_2D", ["x", "w", "b"], ["y"], ("Conv2DOptions", options), 6
        compare(tensors, operator, rows(rng, batch, 9, 7, depth))


@pytest.mark.parametrize("kernel", [1, 3])
def test_depthwise_conv_2d(rng, kernel):
    """LiteRT computes it with a kernel of its own."""
    for batch, depth, multiplier in ((1, 1, 1), (1, 3, 1), (2, 4, 1), (3, 6, 1), (1, 3, 3)):
        n, (options, sizes) = depth * multiplier, window(rng, kernel)
        tensors = {
            "x": T((batch, 9, 7, depth), "float32"), "y": T((batch, *sizes, n), "float32"),
            "w": T(data=weights(rng, 1, kernel, kernel, n), scale=rng.uniform(0.01, 1, n), axis=3),
            "b": T(data=rng.normal(size=n).astype(F32)),
        }
        options = "DepthwiseConv2DOptions", options | {"depthMultiplier": multiplier}
        operator = "DEPTHWISE_CONV_2D", ["x", "w", "b"], ["y"], options, 6
        compare(tensors, operator, rows(rng, batch, 9, 7, depth))


@pytest.mark.parametrize("padding, size", [(SAME, (8, 10)), (VALID, (9, 11))])
def test_transpose_conv(rng, padding, size):
    tensors = {
        "s": T(data=np.array([2, *size, 6], np.int32)),
        "w": T(data=weights(rng, 6, 3, 3, 3), scale=scales(rng, 6)),
        "x": T((2, 4, 5, 3), "float32"), "y": T((2, *size, 6), "float32"),
    }
    options = "TransposeConvOptions", {"strideH": 2, "strideW": 2, "padding": padding}
    operator = "TRANSPOSE_CONV", ["s", "w", "x"], ["y"], options, 1
    compare(tensors, operator, rows(rng, 2, 4, 5, 3))


@pytest.mark.parametrize("x, w, options", [
    ((3, 8), (8, 5), {}), ((2, 3, 8), (2, 5, 8), {"adjY": True}), ((4, 3, 8), (8, 5), {}),
    ((2, 3, 8), (1, 8, 5), {}), ((8, 3), (8, 5), {"adjX": True}),
])
def test_batch_matmul(rng, x, w, options):
    m, n = x[-1 if "adjX" in options else -2], w[-2 if "adjY" in options else -1]
    tensors = {
        "x": T(x, "float32"), "w": T(data=weights(rng, *w), scale=0.03),
        "y": T((*x[:-2], m, n), "float32"),
    }
    operator = "BATCH_MATMUL", ["x", "w"], ["y"], ("BatchMatMulOptions", options), 4
    compare(tensors, operator, rows(rng, *x))


def test_a_product_of_two_activations_is_on_the_core(rng):
    """Its constant is the second operand, not weights."""
    tensors = {
        "x": T((2, 3, 8), "float32"), "w": T(data=weights(rng, 2, 8, 5), scale=0.03),
        "y": T((2, 3, 5), "float32"),
    }
    data = build(
        tensors, [("BATCH_MATMUL", ["x", "w"], ["y"], ("BatchMatMulOptions", {}), 4)], ["x"], ["y"]
    )
    graph, x = load(data, "net"), rows(rng, 2, 3, 8)
    with compile_graph(graph, CONFIG).open(GoldenTransport(CONFIG)) as session:
        y = session(x)
    assert np.array_equal(y, run_graph(graph, [x])[graph.outputs[0]])


def test_rejects_a_zero_point_of_the_weights(rng):
    tensors = {
        "x": T((3, 8), "float32"), "w": T(data=weights(rng, 5, 8), scale=0.1, zero=4),
        "y": T((3, 5), "float32"),
    }
    options = "FullyConnectedOptions", {}
    data = build(tensors, [("FULLY_CONNECTED", ["x", "w"], ["y"], options)], ["x"], ["y"])
    with pytest.raises(ModelError, match="product with float32 must have zero points of 0"):
        load(data, "net")


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_uint8_weights_of_a_dense_layer_are_bytes_of_int8(asymmetric, bias):
    """Old converters write such files. The zero point has no effect in LiteRT."""
    rng = np.random.default_rng(51)
    tensors = {
        "x": T((9, 33), "float32"), "y": T((9, 6), "float32"),
        "w": T(data=rng.integers(-127, 128, (6, 33)).astype(np.int8).view(np.uint8), scale=0.02,
               zero=128),
    }
    if bias:
        tensors["b"] = T(data=rng.normal(size=6).astype(F32))
    options = {"fusedActivationFunction": 1, "asymmetricQuantizeInputs": asymmetric}
    operator = (
        "FULLY_CONNECTED", ["x", "w", *(["b"] if bias else [])], ["y"],
        ("FullyConnectedOptions", options), 9,
    )
    compare(tensors, operator, rows(rng, 9, 33))


@pytest.mark.parametrize("kernel, stride, padding, size", [
    (3, 1, SAME, 6), (1, 1, SAME, 6), (3, 2, VALID, 2), (2, 1, VALID, 5),
])
def test_uint8_weights_of_a_convolution_are_bytes_of_int8(kernel, stride, padding, size):
    """A row is an image."""
    rng = np.random.default_rng(52)
    weights = rng.integers(-127, 128, (5, kernel, kernel, 4)).astype(np.int8).view(np.uint8)
    tensors = {
        "x": T((2, 6, 6, 4), "float32"), "w": T(data=weights, scale=0.02, zero=3),
        "b": T(data=rng.normal(size=5).astype(F32)), "y": T((2, size, size, 5), "float32"),
    }
    options = PLAIN | {"strideH": stride, "strideW": stride, "padding": padding}
    operator = ("CONV_2D", ["x", "w", "b"], ["y"], ("Conv2DOptions", options), 5)
    compare(tensors, operator, rows(rng, 2, 6, 6, 4))


def test_uint8_weights_have_one_scale():
    tensors = {
        "x": T((1, 4), "float32"), "y": T((1, 2), "float32"),
        "w": T(data=np.ones((2, 4), np.uint8), scale=[0.1, 0.2]),
    }
    data = build(tensors, [
        ("FULLY_CONNECTED", ["x", "w"], ["y"], ("FullyConnectedOptions", {}), 9)
    ], ["x"], ["y"])
    with pytest.raises(ModelError, match="uint8 weights of a product with float32 must have 1"
                                         " scale, not 2$"):
        load(data, "net")


def test_uint8_weights_of_a_depthwise_convolution_are_refused():
    """LiteRT refuses them, too."""
    tensors = {
        "x": T((1, 4, 4, 2), "float32"), "y": T((1, 4, 4, 2), "float32"),
        "w": T(data=np.ones((1, 3, 3, 2), np.uint8), scale=0.1),
    }
    data = build(tensors, [(
        "DEPTHWISE_CONV_2D", ["x", "w"], ["y"],
        ("DepthwiseConv2DOptions", PLAIN | {"depthMultiplier": 1}), 6,
    )], ["x"], ["y"])
    with pytest.raises(ModelError, match="a product of float32 and uint8 to float32"):
        load(data, "net")
