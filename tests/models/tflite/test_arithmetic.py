"""Operators of two operands, in numpy, against TFLite Micro."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build, micro
from tflite_operators import FLOAT, INT8, INT16, check, q, values

from weft.models.tflite import load

BROADCASTS = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((1,), (2, 3, 4)), ((2, 1, 4), (1, 3, 1))]


@pytest.mark.parametrize("dtype", [INT8, INT16, FLOAT, np.int32])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_arithmetic(rng, name, dtype):
    for fused, (a, b) in itertools.product(range(4), BROADCASTS):
        y = q(rng, np.broadcast_shapes(a, b), dtype)
        options = {"fusedActivationFunction": fused}
        options = f"{name.title()}Options", options
        check(rng, name, [q(rng, a, dtype), q(rng, b, dtype)], [y], options, trivial=True)


def test_the_same_tensor_twice(rng):
    x, y = q(rng, (2, 9)), q(rng, (2, 9))
    data = build({"x": x, "y": y}, [("ADD", ["x", "x"], ["y"], ("AddOptions", {}))], ["x"], ["y"])
    graph, value = load(data, "net"), values(rng, x)
    assert np.array_equal(run_graph(graph, [value])[1], micro(data, [value])[0])


@pytest.mark.parametrize("name, dtype", [
    ("SQUARED_DIFFERENCE", INT8), ("SQUARED_DIFFERENCE", FLOAT), ("DIV", FLOAT),
])
def test_more_arithmetic(rng, name, dtype):
    for a, b in BROADCASTS:
        y = q(rng, np.broadcast_shapes(a, b), dtype)
        options = ("DivOptions", {}) if name == "DIV" else ("SquaredDifferenceOptions", {})
        check(rng, name, [q(rng, a, dtype), q(rng, b, dtype)], [y], options, trivial=True)


@pytest.mark.parametrize("dtype", [INT8, FLOAT, np.int32])
@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM"])
def test_extremes(rng, name, dtype):
    for a, b in BROADCASTS:
        x = q(rng, a, dtype)
        y = T(np.broadcast_shapes(a, b), dtype, scale=x.scale, zero=x.zero)
        other = T(b, dtype, scale=x.scale, zero=x.zero)
        check(rng, name, [x, other], [y], ("MaximumMinimumOptions", {}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT, np.int32])
@pytest.mark.parametrize("name", [
    "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
])
def test_comparisons(rng, name, dtype):
    kind = "".join(part.title() for part in name.split("_")) + "Options"
    for a, b in BROADCASTS:
        y = T(np.broadcast_shapes(a, b), "bool")
        inputs = [q(rng, a, dtype), q(rng, b, dtype)]
        check(rng, name, inputs, [y], (kind, {}), trivial=True)


@pytest.mark.parametrize("name", ["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"])
def test_logical(rng, name):
    count = 1 if name == "LOGICAL_NOT" else 2
    check(rng, name, [T((3, 5), "bool")] * count, [T((3, 5), "bool")])


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_prelu(rng, dtype):
    for slope in ((1, 1, 4), (4,)):
        x, y = q(rng, (2, 3, 4), dtype), q(rng, (2, 3, 4), dtype)
        check(rng, "PRELU", [x, q(rng, slope, dtype)], [y])


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_select(rng, dtype):
    x = q(rng, (2, 3, 4), dtype)
    other = T((4,), dtype, scale=x.scale, zero=x.zero)
    check(rng, "SELECT_V2", [T((2, 3, 1), "bool"), x, other], [x], ("SelectV2Options", {}))
