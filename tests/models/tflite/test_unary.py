"""Operators of one operand, in numpy, against TFLite Micro."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from rejects import rejects
from tflite_files import T, build, micro
from tflite_operators import FLOAT, INT8, INT16, check, check_uint8, q

from weft.models.errors import ModelError
from weft.models.tflite import load


@pytest.mark.parametrize("out", [INT8, INT16])
def test_softmax(rng, out):
    for scale, beta, columns in itertools.product((0.01, 0.1, 0.5, 2.0), (1.0, 0.3), (1, 7, 300)):
        y = T((4, columns), out, scale=1 / 256 if out == INT8 else 1 / 65536,
              zero=-128 if out == INT8 else -32768)
        x = q(rng, (4, columns), scale=scale)
        check(rng, "SOFTMAX", [x], [y], ("SoftmaxOptions", {"beta": beta}), trivial=True)


FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


@pytest.mark.parametrize("name", [
    "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "ELU", "ABS", "RSQRT",
])
def test_tables(rng, name):
    every = np.arange(256, dtype=np.uint8).view(INT8)
    for _ in range(60):
        x, y = q(rng, (256,)), q(rng, (256,))
        if name in FIXED:
            y = T((256,), scale=FIXED[name][0], zero=FIXED[name][1])
        if name == "RELU6":
            y = T((256,), scale=x.scale, zero=x.zero)
        if name == "RSQRT":
            x.zero, y.scale = -128, y.scale * 20
        if name == "HARD_SWISH":
            y.scale = x.scale * float(rng.uniform(0.3, 1.5))
        options = None
        if name == "LEAKY_RELU":
            options = "LeakyReluOptions", {"alpha": float(rng.uniform(-0.5, 2))}
        data = build({"x": x, "y": y}, [(name, ["x"], ["y"], options)], ["x"], ["y"])
        graph = load(data, "net")
        assert graph.nodes[0].kernel == "table"
        found = run_graph(graph, [every])[1]
        [expected] = micro(data, [every])
        assert np.array_equal(found, expected), (x.scale, x.zero, y.scale, found, expected)
        tensors = {"x": x, "y": y}
        check_uint8(name, tensors, ["x"], ["y"], options, [every], [expected])


def test_the_runtime_has_roots_of_negative_values(rng):
    data = build({"x": q(rng, (4,)), "y": q(rng, (4,))}, [("RSQRT", ["x"], ["y"])], ["x"], ["y"])
    [node] = load(data, "net").nodes
    assert node.kernel == "tflite.model"
    assert "not -128: some values are below 0" in node.reason


def test_rejects_the_square_root_of_int8(rng):
    """TFLite Micro would refuse it only when it runs."""
    data = build({"x": q(rng, (4,)), "y": q(rng, (4,))}, [("SQRT", ["x"], ["y"])], ["x"], ["y"])
    text = "net: operator 0 (SQRT, 'y'): input must be float32, not int8: TFLite Micro has no other"
    with rejects(ModelError, text):
        load(data, "net")


@pytest.mark.parametrize("name", [
    "RELU", "RELU6", "LEAKY_RELU", "ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "FLOOR", "CEIL",
    "ROUND",
])
def test_float_functions(rng, name):
    options = ("LeakyReluOptions", {"alpha": 0.1}) if name == "LEAKY_RELU" else None
    check(rng, name, [T((50,), FLOAT)], [T((50,), FLOAT)], options, trivial=True)


def test_elu_near_the_middle_of_two_values():
    every = np.arange(256, dtype=np.uint8).view(INT8)
    x, y = T((256,), scale=2**-12), T((256,), scale=2**-11)
    data = build({"x": x, "y": y}, [("ELU", ["x"], ["y"], None)], ["x"], ["y"])
    [expected] = micro(data, [every])
    np.testing.assert_array_equal(run_graph(load(data, "net"), [every])[1], expected)


@pytest.mark.parametrize("name", FIXED)
def test_sigmoids_of_exact_scales(name):
    """Many results lie close to the middle of two values: the bits of fixed point decide."""
    every = np.arange(256, dtype=np.uint8).view(INT8)
    for scale in (*(2.0**n for n in range(-20, 4)), 3 / 512, 1e-3):
        for zero in (-128, 3):
            x = T((256,), scale=scale, zero=zero)
            y = T((256,), scale=FIXED[name][0], zero=FIXED[name][1])
            data = build({"x": x, "y": y}, [(name, ["x"], ["y"], None)], ["x"], ["y"])
            [expected] = micro(data, [every])
            np.testing.assert_array_equal(run_graph(load(data, "net"), [every])[1], expected)


@pytest.mark.parametrize("name", ["LOGISTIC", "TANH"])
def test_int16_sigmoids(rng, name):
    for scale in (2**-13, 2**-12, 2**-11, 2**-10, 2**-15, 1e-4, 3e-4, 0.00123, 0.01, 1e-9, 0.5):
        x = T((3000,), INT16, scale=scale)
        y = T((3000,), INT16, scale=1 / 32768)
        check(rng, name, [x], [y], trivial=True)


@pytest.mark.parametrize("alpha", [-0.5, -0.25, -0.75, -2.0, -7 / 128, 0.0, 0.25, 1.5])
@pytest.mark.parametrize("dtype", [INT8, INT16])
def test_leaky_relu_next_to_ties(dtype, alpha):
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1).astype(dtype)
    for zero, y_scale in itertools.product((0, 100, -128) if dtype == INT8 else (0,), (5, 4, 2, 7)):
        x, y = (T(every.shape, dtype, scale, zero) for scale in (2**-5, 2**-y_scale))
        options = "LeakyReluOptions", {"alpha": alpha}
        data = build({"x": x, "y": y}, [("LEAKY_RELU", ["x"], ["y"], options)], ["x"], ["y"])
        [expected] = micro(data, [every])
        np.testing.assert_array_equal(run_graph(load(data, "net"), [every])[1], expected)


def test_int16_leaky_relu(rng):
    for alpha in (0.1, 1.5):
        x, y = q(rng, (500,), INT16), q(rng, (500,), INT16)
        check(rng, "LEAKY_RELU", [x], [y], ("LeakyReluOptions", {"alpha": alpha}))


@pytest.mark.parametrize("source, target", [
    (FLOAT, INT8), (FLOAT, INT16), (INT8, INT8), (INT16, INT8), (INT16, INT16), (INT8, INT16),
    (np.int32, INT8), (np.int32, INT16), (INT8, np.int32), (INT16, np.int32), (np.uint8, INT8),
    (INT8, np.uint8),
])
def test_quantize(rng, source, target):
    for _ in range(10):
        x, y = q(rng, (300,), source), q(rng, (300,), target)
        for t in (x, y):
            if np.dtype(t.dtype) == np.int32:
                t.scale, t.zero = 0.001, 0
            if np.dtype(t.dtype) == np.uint8:
                t.zero += 128
        if source == INT16 and target == INT8:
            x.zero = 700
        check(rng, "QUANTIZE", [x], [y], trivial=True)


@pytest.mark.parametrize("source", [INT8, INT16, np.uint8])
def test_dequantize(rng, source):
    for _ in range(10):
        x = q(rng, (300,), source)
        x.zero += 128 * (source == np.uint8)
        check(rng, "DEQUANTIZE", [x], [T((300,), FLOAT)])


@pytest.mark.parametrize("source, target", [
    (INT8, FLOAT), (INT16, np.int32), (np.int32, FLOAT), (INT8, np.int32), (np.int32, INT16),
])
def test_cast(rng, source, target):
    check(rng, "CAST", [T((30,), source)], [T((30,), target)])


def test_results_beyond_float32_saturate():
    """No warning: ``exp(88) / scale`` is infinite."""
    data = build(
        {"x": T((1, 256), scale=3.0, zero=-128), "y": T((1, 256), scale=0.05)},
        [("EXP", ["x"], ["y"])], ["x"], ["y"],
    )
    graph = load(data, "net")
    assert graph.nodes[0].attributes["table"].max() == 127
