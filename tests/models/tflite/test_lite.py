"""Operators of the host in mode ``single`` against LiteRT, if its wheel is installed."""

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build
from tflite_operators import FLOAT, INT8, INT16, q, raised, values

from weft.models.exactness import in_mode
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

EVERY = np.arange(256, dtype=np.uint8).view(INT8)
VERSIONS = {"RESIZE_BILINEAR": 3, "SOFTMAX": 3}


def axes(*numbers):
    return T(data=np.array(numbers, np.int32))


def powers(rng, *tensors):
    """Scales that are powers of two, in half of the cases: many results are ties."""
    for tensor in tensors if rng.random() < 0.5 else ():
        tensor.scale = float(np.exp2(np.rint(np.log2(tensor.scale))))


def compare(name, inputs, y, options, fed, kernel):
    """One operator; ``fed`` are the values of the inputs without data."""
    pytest.importorskip("ai_edge_litert")
    tensors = {f"i{i}": tensor for i, tensor in enumerate(inputs)} | {"y": y}
    ins = list(tensors)[:-1]
    names = [key for key in ins if tensors[key].data is None]
    operator = (name, ins, ["y"], options, VERSIONS.get(name, 2))
    data = build(tensors, [operator], names, ["y"])
    graph = in_mode(load(data, "net"), "single")
    assert [node.kernel for node in graph.nodes] == [kernel]
    [[expected]] = litert(data, [fed])
    np.testing.assert_array_equal(run_graph(graph, fed)[graph.outputs[0]], expected)


def of_bytes(tensor, unsigned):
    """The tensor of int8, or the same one of uint8."""
    if not unsigned or tensor.data is not None or tensor.dtype != "int8":
        return tensor
    return T(tensor.shape, "uint8", tensor.scale, tensor.zero + 128)


def both(name, inputs, y, options, fed, kernel):
    """As `compare`, and with all int8 raised to uint8."""
    compare(name, inputs, y, options, fed, kernel)
    compare(
        name, [of_bytes(tensor, True) for tensor in inputs], of_bytes(y, True), options,
        [raised(value) for value in fed], kernel,
    )


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_all_pairs_of_bytes(rng, name):
    for number in range(8):
        tensors = q(rng, (1, 256)), q(rng, (256, 1)), q(rng, (256, 256))
        powers(rng, *tensors)
        *inputs, y = tensors
        options = f"{name.title()}Options", {"fusedActivationFunction": number % 4}
        kernel = "litert.mul" if name == "MUL" else "litert.add"
        both(name, inputs, y, options, [EVERY[None], EVERY[:, None]], kernel)


@pytest.mark.parametrize("scale, zero, fused, low, high", [
    (0.48, 0, 3, 0, 12), (0.48, 7, 3, 7, 20), (0.16, 7, 3, 7, 44), (0.4, 0, 2, -2, 2),
    (0.4, 7, 2, 4, 10), (0.4, 7, 1, 7, 127), (0.4, 7, 0, -128, 127),
])
def test_limits_of_activations_next_to_ties(rng, scale, zero, fused, low, high):
    """LiteRT rounds ``limit / scale + zero`` to even; the values are recorded."""
    options = {"fusedActivationFunction": fused}
    window = {"filterHeight": 1, "filterWidth": 1, "strideH": 1, "strideW": 1}
    x, w = T((1, 8, 8, 4), scale=scale, zero=zero), T(data=EVERY[:64].reshape(16, 4), scale=0.01)
    for name, inputs, shape, kind, more in (
        ("ADD", ["x", "x"], x.shape, "AddOptions", {}),
        ("MUL", ["x", "x"], x.shape, "MulOptions", {}),
        ("MAX_POOL_2D", ["x"], x.shape, "Pool2DOptions", window),
        ("FULLY_CONNECTED", ["x", "w"], (64, 16), "FullyConnectedOptions", {}),
    ):
        y = T(shape, scale=scale, zero=zero)
        tensors = {"x": x, "y": y} | ({"w": w} if "w" in inputs else {})
        data = build(tensors, [(name, inputs, ["y"], (kind, options | more), 2)], ["x"], ["y"])
        [node] = in_mode(load(data, "net"), "single").nodes
        found = getattr(node, "requantization", None)
        limits = node.attributes if found is None else {"low": found.low, "high": found.high}
        assert (limits["low"], limits["high"]) == (low, high), name


def test_a_product_of_a_tensor_with_itself():
    """LiteRT computes a square in float32, and adds the zero point before it rounds."""
    x = T((1, 256), scale=0.5, zero=3)
    options = "MulOptions", {}
    y = T((1, 256), scale=0.5, zero=11)
    data = build({"x": x, "y": y}, [("MUL", ["x", "x"], ["y"], options, 2)], ["x"], ["y"])
    graph = in_mode(load(data, "net"), "single")
    found = run_graph(graph, [EVERY[None]])[graph.outputs[0]][0].astype(int)
    steps = np.arange(-128, 128) - 3
    expected = np.rint(steps**2 * 0.5 + 11).clip(-128, 127)  # all numbers are exact
    order = np.argsort(EVERY)
    assert found[order].tolist() == expected.tolist()
    assert found[list(EVERY).index(4)] == 12  # 0.5 + 11 is 11.5; LiteRT gives 12


def test_a_product_of_a_tensor_with_itself_equals_litert(rng):
    pytest.importorskip("ai_edge_litert")
    for number in range(8):
        tensors = {"x": q(rng, (1, 256)), "y": q(rng, (1, 256))}
        powers(rng, *tensors.values())
        if number % 2:  # half of the squares are ties
            tensors = {n: T((1, 256), scale=0.5, zero=number) for n in tensors}
        options = "MulOptions", {"fusedActivationFunction": number % 4}
        data = build(tensors, [("MUL", ["x", "x"], ["y"], options, 2)], ["x"], ["y"])
        graph = in_mode(load(data, "net"), "single")
        [[expected]] = litert(data, [[EVERY[None]]])
        np.testing.assert_array_equal(
            run_graph(graph, [EVERY[None]])[graph.outputs[0]], expected
        )


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_scales_that_xnnpack_does_not_take(rng, name):
    """LiteRT has another kernel for them, which computes as TFLite Micro does."""
    x, y = T((1, 256), scale=2**-12, zero=3), T((1, 256), scale=8.0, zero=-4)
    kernel = f"tflite.{name.lower()}"
    compare(name, [x, x], y, (f"{name.title()}Options", {}), [EVERY[None], EVERY[None]], kernel)


@pytest.mark.parametrize("name", ["MEAN", "SUM"])
def test_reductions(rng, name):
    for number, along in enumerate([(1, 2), (3,), (0, 2), (0, 1, 2, 3), (1, 3), (2,)] * 3):
        x = q(rng, (2, 5, 6, 8))
        shape = np.zeros(x.shape).sum(along, keepdims=bool(number % 2)).shape
        y = q(rng, shape)
        powers(rng, x, y)
        y.scale *= x.shape[1] if name == "SUM" else 1
        if number % 3 == 0:
            y = T(shape, scale=x.scale, zero=x.zero)
        options = "ReducerOptions", {"keepDims": bool(number % 2)}
        both(name, [x, axes(*along)], y, options, [values(rng, x)], "litert.sum")


@pytest.mark.parametrize("align, half", [(False, False), (True, False), (False, True)])
def test_resize_bilinear(rng, align, half):
    options = "ResizeBilinearOptions", {"alignCorners": align, "halfPixelCenters": half}
    for size in ((1, 1), (3, 9), (10, 14), (5, 7), (17, 4), (23, 29)):
        x = q(rng, (2, 5, 7, 3))
        y = T((2, *size, 3), scale=x.scale, zero=x.zero)
        kernel = "litert.resize_bilinear"
        both("RESIZE_BILINEAR", [x, axes(*size)], y, options, [values(rng, x)], kernel)


@pytest.mark.parametrize("out", [INT8, INT16])
def test_softmax(rng, out):
    for number in range(12):
        x = q(rng, (20, int(rng.integers(1, 300))), scale=float(np.exp2(rng.uniform(-8, 1))))
        y = T(x.shape, out, *((1 / 256, -128) if out == INT8 else (1 / 65536, -32768)))
        options = "SoftmaxOptions", {"beta": 1.0 if number % 3 else 0.7}
        compare("SOFTMAX", [x], y, options, [values(rng, x)], "litert.softmax")


@pytest.mark.parametrize("dtype", [INT8, np.uint8, INT16])
def test_quantize(rng, dtype):
    for _ in range(5):
        x, y = T((1, 3001), FLOAT), q(rng, (1, 3001), INT16 if dtype == INT16 else INT8)
        powers(rng, y)
        value = (rng.integers(-600, 600, x.shape) * 0.5 * y.scale).astype(FLOAT)
        value[:, ::3] = np.nextafter(value[:, ::3], FLOAT(9e9))
        compare("QUANTIZE", [x], of_bytes(y, dtype == np.uint8), None, [value], "litert.quantize")


def test_infinities_and_nan_saturate():
    x, y = T((1, 16), FLOAT), T((1, 16), scale=0.5, zero=3)
    value = np.repeat(np.array([np.nan, np.inf, -np.inf, 0], FLOAT), 4)[None]
    compare("QUANTIZE", [x], y, None, [value], "litert.quantize")


@pytest.mark.parametrize("name, scale, kernel", [
    ("LOGISTIC", 2**-12, "litert.logistic16"), ("LOGISTIC", 2**-11, "tflite.logistic16"),
    ("TANH", 2**-12, "litert.tanh16"), ("TANH", 2**-11, "litert.tanh16"),
    ("TANH", 2**-10, "tflite.tanh16"), ("TANH", 1e-4, "tflite.tanh16"),
])
def test_sigmoids_of_int16(name, scale, kernel):
    x, y = T((1 << 16,), INT16, scale=scale), T((1 << 16,), INT16, scale=1 / 32768)
    value = np.arange(-(1 << 15), 1 << 15).astype(INT16)
    compare(name, [x], y, None, [value], kernel)


def test_leaky_relu_of_int16(rng):
    value = np.arange(-(1 << 15), 1 << 15).astype(INT16)
    for alpha in (0.1, 0.5, 0.3, 1.5, 0.0, -0.2, -0.5, -0.75, -2.0):
        x, y = q(rng, (1 << 16,), INT16), q(rng, (1 << 16,), INT16)
        powers(rng, x, y)
        options = "LeakyReluOptions", {"alpha": alpha}
        compare("LEAKY_RELU", [x], y, options, [value], "litert.leaky_relu")
