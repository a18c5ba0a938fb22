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
