"""Operators that become constants: the shapes of dynamic networks, as LiteRT computes them."""

import numpy as np
import pytest
from graph_runner import run_graph
from network_cores import network_core_config
from tflite_files import T, build, micro

from weft.config import Config
from weft.host import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.ir import Gemm
from weft.models.network_core.compiler import compile_network_core
from weft.models.report.placement import placement_line
from weft.models.target import target_of
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

I32 = np.int32
SHRINK = "StridedSliceOptions", {"shrinkAxisMask": 1}


def ints(*values):
    return T(data=np.array(values, I32))


def scalar(value):
    return T(data=np.array(value, I32))


def size(place, name):
    """Operators that compute the size of axis ``place`` of x, and their tensors."""
    tensors = {
        f"{name}/shape": T((4,), "int32"), f"{name}/from": ints(place),
        f"{name}/to": ints(place + 1), "one": ints(1), name: T((), "int32"),
    }
    return tensors, [
        ("SHAPE", ["x"], [f"{name}/shape"], ("ShapeOptions", {"outType": 2}), 1),
        ("STRIDED_SLICE", [*list(tensors)[:4]], [name], SHRINK, 1),
    ]


def dynamic_file(dtype="float32", **quantized):
    """Two sizes of x give the shape of y, as converters write ``reshape(x, [n, h * w, c])``."""
    (rows, first), (columns, second) = size(1, "rows"), size(2, "columns")
    tensors = {
        "x": T((1, 4, 4, 2), dtype, any_size=(0,), **quantized), **rows, **columns,
        "pixels": T((), "int32"), "rest": scalar(-1), "depth": scalar(2),
        "shape": T((3,), "int32"),
        "y": T((1, 1, 2), dtype, any_size=(0, 1), **quantized),
    }
    operators = [
        *first, *second, ("MUL", ["rows", "columns"], ["pixels"], ("MulOptions", {}), 1),
        ("PACK", ["rest", "pixels", "depth"], ["shape"], ("PackOptions", {"valuesCount": 3}), 1),
        ("RESHAPE", ["x", "shape"], ["y"], ("ReshapeOptions", {}), 1),
    ]
    return tensors, operators


def test_shapes_are_computed_from_shapes(rng):
    data = build(*dynamic_file(), ["x"], ["y"])
    graph, x = load(data, "net"), rng.normal(size=(1, 4, 4, 2)).astype(np.float32)
    assert [node.operator for node in graph.nodes] == ["RESHAPE"]
    y = run_graph(graph, [x])[graph.outputs[0]]
    assert np.array_equal(y, x.reshape(1, 16, 2))
    pytest.importorskip("ai_edge_litert")
    [[expected]] = litert(data, [[x]])
    assert y.shape == expected.shape and np.array_equal(y, expected)


def test_a_network_core_has_no_operators_of_shapes(rng):
    """They would divide the network: convolution, shapes, fully connected layer."""
    tensors, operators = dynamic_file(scale=0.1, dtype="int8")
    options = "Conv2DOptions", {
        "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1,
    }
    tensors |= {
        "image": T((1, 4, 4, 3), scale=0.1, any_size=(0,)),
        "w": T(data=rng.integers(-127, 128, (2, 3, 3, 3), np.int8), scale=0.01),
        "v": T(data=rng.integers(-127, 128, (5, 32), np.int8), scale=0.01),
        "z": T((1, 5), scale=0.5, any_size=(0,)),
    }
    operators = [
        ("CONV_2D", ["image", "w"], ["x"], options), *operators,
        ("FULLY_CONNECTED", ["y", "v"], ["z"], ("FullyConnectedOptions", {})),
    ]
    data = build(tensors, operators, ["image"], ["z"])
    graph, x = load(data, "net"), rng.integers(-128, 128, (1, 4, 4, 3), np.int8)
    expected = run_graph(graph, [x])[graph.outputs[0]]
    program = compile_network_core(graph, target_of(network_core_config(2, 4, 4)))
    assert len(program.segments) == 1 and not program.host
    assert "3 of 3 operators on Weft (100 % of 1,024 MAC); " in placement_line(program)
    with program.open("golden") as session:
        assert np.array_equal(session(x), expected)


SHAPES = [
    ("BROADCAST_ARGS", [ints(1, 3), ints(4, 1, 1)], T((3,), "int32"), None),
    ("FILL", [ints(2, 3), scalar(7)], T((2, 3), "int32"), None),
    ("FILL", [ints(4), T(data=np.float32(0.5))], T((1,), "float32", any_size=(0,)), None),
    ("RANGE", [scalar(3), scalar(11), scalar(3)], T((1,), "int32", any_size=(0,)), None),
    ("RANGE", [scalar(5), scalar(-2), scalar(-1)], T((7,), "int32"), None),
    ("RANGE", [T(data=np.float32(v)) for v in (0.1, 2, 0.3)],
     T((1,), "float32", any_size=(0,)), None),
    ("RANK", [T(data=np.ones((2, 3, 4), I32))], T((), "int32"), None),
    ("CONCATENATION", [ints(2, 3), ints(4)], T((3,), "int32"), (
        "ConcatenationOptions", {"axis": 0},
    )),
    ("GATHER", [ints(5, 6, 7), ints(2, 0)], T((2,), "int32"), ("GatherOptions", {})),
    ("ADD", [ints(5, 6), ints(-7)], T((2,), "int32"), ("AddOptions", {})),
    ("SUB", [ints(5, 6), ints(9)], T((2,), "int32"), ("SubOptions", {})),
    ("MUL", [T(data=np.array([5, -6])), T(data=np.array([3]))], T((2,), "int64"), (
        "MulOptions", {},
    )),
    ("DIV", [ints(7, -7, 7, -7), ints(2, 2, -2, -2)], T((4,), "int32"), ("DivOptions", {})),
    ("FLOOR_DIV", [ints(7, -7, 7, -7), ints(2, 2, -2, -2)], T((4,), "int32"), None),
    ("FLOOR_MOD", [ints(7, -7, 7, -7), ints(2, 2, -2, -2)], T((4,), "int32"), None),
    ("MAXIMUM", [ints(1, 9), ints(5)], T((2,), "int32"), ("MaximumMinimumOptions", {})),
    ("CAST", [ints(1, 0, -3)], T((3,), "int64"), ("CastOptions", {
        "inDataType": 2, "outDataType": 4,
    })),
    ("REDUCE_PROD", [ints(2, 3, 4), ints(0)], T((), "int32"), ("ReducerOptions", {})),
    ("SUM", [ints([2, 3], [4, -9]), ints(-1)], T((2, 1), "int32"), (
        "ReducerOptions", {"keepDims": True},
    )),
    ("SLICE", [ints(5, 6, 7), ints(1), ints(-1)], T((2,), "int32"), None),
    ("LESS", [ints(1, 9), ints(5)], T((2,), "bool"), None),
    ("SELECT_V2", [T(data=np.array([True, False])), ints(1), ints(2)], T((2,), "int32"), None),
    ("EXPAND_DIMS", [ints(1, 2), scalar(-1)], T((2, 1), "int32"), None),
    ("BROADCAST_TO", [ints(1, 2), ints(3, 2)], T((1, 2), "int32", any_size=(0,)), None),
    ("TRANSPOSE", [ints([1, 2, 3], [4, 5, 6]), ints(1, 0)], T((3, 2), "int32"), None),
]


@pytest.mark.parametrize("name, inputs, y, options", SHAPES, ids=[
    f"{name.lower()}{number}" for number, (name, *_) in enumerate(SHAPES)
])
def test_an_operator_of_constants_is_a_constant(name, inputs, y, options):
    tensors = {f"i{n}": tensor for n, tensor in enumerate(inputs)} | {"y": y}
    version = 2 if name == "BROADCAST_TO" else 1
    data = build(tensors, [(name, list(tensors)[:-1], ["y"], options, version)], [], ["y"])
    graph = load(data, "net")
    assert not graph.nodes
    value = graph.tensors[graph.outputs[0]]
    assert (value.data.dtype, value.data.shape) == (value.dtype, value.shape)
    pytest.importorskip("ai_edge_litert")
    [[expected]] = litert(data, [[]])
    assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(value.data, expected)


def test_weights_that_are_transposed_are_weights(rng):
    w = rng.integers(-127, 128, (6, 4), np.int8)
    tensors = {
        "x": T((2, 6), scale=0.1, zero=3), "w": T(data=w, scale=0.02), "axes": ints(1, 0),
        "v": T((4, 6), scale=0.02), "y": T((2, 4), scale=0.3),
    }
    data = build(tensors, [
        ("TRANSPOSE", ["w", "axes"], ["v"], None, 2),
        ("FULLY_CONNECTED", ["x", "v"], ["y"], ("FullyConnectedOptions", {})),
    ], ["x"], ["y"])
    graph, x = load(data, "net"), rng.integers(-128, 128, (2, 6), np.int8)
    [node] = graph.nodes
    assert isinstance(node, Gemm) and np.array_equal(node.weights[0], w)
    [expected] = micro(data, [x])
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)


def test_a_constant_is_an_output(rng):
    config, x = Config(rows=2, cols=4, depth=4), rng.normal(size=(1, 4, 4, 2)).astype(np.float32)
    graph = load(build(*dynamic_file(), ["x"], ["shape", "y"]), "net")
    program = compile_graph(graph, config)
    line = placement_line(program)
    assert "0 of 1 operators on Weft, 1 on the host (RESHAPE); " in line
    if graph.unlike:
        assert "; not equal to TFLite Micro: it takes the sizes that the file stores; " in line
    with program.open(GoldenTransport(config)) as session:
        shape, y = session(x)
    assert shape.tolist() == [-1, 16, 2] and y.shape == (1, 16, 2)


def test_a_large_result_is_computed_when_it_runs():
    """The file would not bound the memory of a program."""
    tensors = {"dims": ints(700, 700), "one": scalar(1), "y": T((700, 700), "int32")}
    graph = load(build(tensors, [("FILL", ["dims", "one"], ["y"], None)], [], ["y"]), "net")
    assert [node.kernel for node in graph.nodes] == ["broadcast"]
    assert graph.tensors[graph.outputs[0]].data is None


def test_functions_of_float_stay():
    """The first line names them: their results are close, not equal."""
    tensors = {"x": T(data=np.ones((1, 3), np.float32)), "y": T((1, 3), "float32")}
    graph = load(build(tensors, [("SQUARE", ["x"], ["y"], None)], [], ["y"]), "net")
    assert not graph.nodes  # IEEE 754 fixes it
    tensors["y"] = T((1, 3), "float32")
    graph = load(build(tensors, [("RSQRT", ["x"], ["y"], None)], [], ["y"]), "net")
    assert len(graph.nodes) == 1


@pytest.mark.parametrize("name, inputs, message", [
    ("RANGE", [scalar(1), scalar(9), scalar(0)], "the step must not be 0 or infinite"),
    ("RANGE", [scalar(5), scalar(2), scalar(1)], "the limit 2 must not be before the start 5"),
    ("FLOOR_DIV", [ints(1), ints(0)], "the divisor must not be 0"),
    ("FILL", [ints(-2), scalar(1)], "sizes must be at least 0, not -2"),
    ("FILL", [ints(2), ints(1, 2)], r"the value must be one number, not \(2,\)"),
])
def test_rejects(name, inputs, message):
    tensors = {f"i{n}": tensor for n, tensor in enumerate(inputs)}
    tensors["y"] = T((1,), "int32", any_size=(0,))
    data = build(tensors, [(name, list(tensors)[:-1], ["y"], None, 1)], [], ["y"])
    with pytest.raises(ModelError, match=message):
        load(data, "net")


def test_rejects_a_range_that_is_not_known():
    tensors = {"x": T((), "int32"), "n": scalar(9), "one": scalar(1), "y": T((9,), "int32")}
    data = build(tensors, [("RANGE", ["x", "n", "one"], ["y"], None, 1)], ["x"], ["y"])
    with pytest.raises(ModelError, match="input 0 is not a constant; TFLite Micro does not have"):
        load(data, "net")
