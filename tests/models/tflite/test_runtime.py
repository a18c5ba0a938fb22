"""Operators that the runtime computes: cut out of their file, with their state, and safely."""

import gc

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build, micro, runner

from weft.models import ModelError, kernels
from weft.models.ir import Gemm
from weft.models.tflite import load, runtime


def single(rng, name, tensors, options=None, outputs=("y",)):
    """A file of one operator; it must become one operator of the runtime."""
    fed = [key for key, t in tensors.items() if t.data is None and not t.variable
           and key not in outputs]
    inputs = [key for key in tensors if key not in outputs]
    data = build(tensors, [(name, inputs, list(outputs), options)], fed, list(outputs))
    graph = load(data, "net")
    assert [node.kernel for node in graph.nodes] == ["tflite.model"]
    return data, graph


@pytest.mark.parametrize("name, dtype", [
    ("SOFTMAX", "float32"), ("LOGISTIC", "float32"), ("EXP", "float32"), ("SOFTMAX", "int16"),
    ("L2_NORMALIZATION", "int8"), ("LOG_SOFTMAX", "int8"), ("CUMSUM", "int8"),
])
def test_a_cut_operator_equals_the_runtime(rng, name, dtype):
    scale, zero = {"int16": (1 / 32768, 0), "int8": (1 / 128, 0)}.get(dtype, (None, 0))
    if name == "LOG_SOFTMAX":
        scale, zero = 16 / 256, 127
    tensors = {"x": T((2, 9), dtype, scale=0.01 if scale else None)}
    if name == "CUMSUM":
        scale = 0.01
        tensors["a"] = T(data=np.array([1], np.int32))
    tensors["y"] = T((2, 9), dtype, scale=scale, zero=zero)
    options = {
        "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}), "CUMSUM": ("CumsumOptions", {}),
        "L2_NORMALIZATION": ("L2NormOptions", {}), "LOG_SOFTMAX": ("LogSoftmaxOptions", {}),
    }.get(name)
    data, graph = single(rng, name, tensors, options)
    x = rng.integers(-100, 100, (2, 9)).astype(dtype)
    if dtype == "float32":
        x = x / np.float32(30)
    y = run_graph(graph, [x])[graph.outputs[0]]
    assert np.array_equal(y, micro(data, [x])[0]) and len(np.unique(y)) > 1


def test_state_lasts_from_run_to_run_and_belongs_to_the_node(rng):
    """The runtime keeps an SVDF of float weights in its interpreter."""
    def constant(*shape):
        return T(data=rng.standard_normal(shape).astype(np.float32))

    tensors = {
        "x": T((1, 6), "float32"), "f": constant(8, 6), "t": constant(8, 4), "b": constant(4),
        "s": T((1, 32), "float32", variable=True), "y": T((1, 4), "float32"),
    }
    options = "SVDFOptions", {"rank": 2, "fusedActivationFunction": 1}
    data, graph = single(rng, "SVDF", tensors, options)
    oracle, states = runner(data), {}
    for _ in range(4):
        x = rng.standard_normal((1, 6)).astype(np.float32)
        y = run_graph(graph, [x], states)[graph.outputs[0]]
        run_graph(graph, [x], {})
        assert np.array_equal(y, oracle(x)[0])


def test_an_operator_of_a_custom_code(rng):
    tensors = {
        "x": T((1, 1, 1, 4), "int8", scale=1), "y": T((1, 5, 1, 4), "int8", scale=1),
    }
    data = build(tensors, [("custom:CIRCULAR_BUFFER", ["x"], ["y"], None)], ["x"], ["y"])
    graph = load(data, "net")
    assert graph.operators == ("CIRCULAR_BUFFER",)
    assert graph.nodes[0].kernel == "tflite.model"


def test_a_second_subgraph_that_is_not_used(rng):
    x, y = T((2, 4), scale=0.1), T((2, 4), scale=0.1)
    part = {"x": x, "y": y}, [("RELU", ["x"], ["y"], None)], ["x"], ["y"]
    graph = load(build(*part, extra=[part]), "net")
    assert any("2 subgraphs" in note for note in graph.notes)
    assert [node.kernel for node in graph.nodes] == ["table"]


def test_if_runs_the_whole_file(rng):
    flag, x, y = T((), "bool"), T((1, 4), "float32"), T((1, 4), "float32")
    branches = [
        ({"x": x, "y": y}, [(name, ["x"], ["y"], None)], ["x"], ["y"]) for name in ("ABS", "NEG")
    ]
    options = "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    data = build(
        {"c": flag, "x": x, "y": y}, [("IF", ["c", "x"], ["y"], options)], ["c", "x"], ["y"],
        extra=branches,
    )
    graph = load(data, "net")
    assert graph.notes == ("the whole file runs in TFLite Micro: it has IF",)
    value = np.array([[-1, 2, -3, 4]], np.float32)
    for condition, expected in ((True, abs(value)), (False, -value)):
        found = run_graph(graph, [np.array(condition), value])
        assert np.array_equal(found[graph.outputs[0]], expected)


def attributes(data, memory=1 << 12):
    return {"model": data, "memory": memory, "label": "net: operator 0 (X)", "outputs": 1}


def test_a_crash_of_the_runtime_is_an_error_and_the_next_run_works(rng):
    """A MEAN without its axes kills the runtime."""
    tensors = {"x": T((4,), scale=0.1), "y": T((4,), scale=0.1)}
    bad = build(tensors, [("MEAN", ["x"], ["y"], None)], ["x"], ["y"])
    good = build(tensors, [("RELU", ["x"], ["y"], None)], ["x"], ["y"])
    x = np.array([-3, -1, 1, 3], np.int8)
    with pytest.raises(ModelError, match=r"operator 0 \(X\): TFLite Micro stopped \(exit code -11"):
        kernels.run("tflite.model", [x], attributes(bad))
    [y] = kernels.run("tflite.model", [x], attributes(good))
    assert y.tolist() == [0, 0, 1, 3]


def test_a_refusal_of_the_runtime_says_why(rng):
    tensors = {"x": T((4,), scale=0.1), "y": T((4,), scale=0.1)}
    data = build(tensors, [("GELU", ["x"], ["y"], None)], ["x"], ["y"])
    with pytest.raises(ModelError, match="TFLite Micro reports: .*op code GELU"):
        kernels.run("tflite.model", [np.zeros(4, np.int8)], attributes(data))


@pytest.mark.slow
def test_a_run_without_end_is_stopped(rng, monkeypatch):
    monkeypatch.setattr(runtime, "LIMIT", 3)
    one, x = T(data=np.ones((1, 1), np.float32)), T((1, 1), "float32")
    body = (
        {"x": x, "o": one, "y": x}, [("MUL", ["x", "o"], ["y"], ("MulOptions", {}))], ["x"], ["y"]
    )
    test = (
        {"x": x, "z": T(data=np.zeros((1, 1), np.float32)), "y": T((1, 1), "bool")},
        [("GREATER", ["x", "z"], ["y"], ("GreaterOptions", {}))], ["x"], ["y"],
    )
    options = "WhileOptions", {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    data = build({"x": x, "y": x}, [("WHILE", ["x"], ["y"], options)], ["x"], ["y"], [test, body])
    graph = load(data, "net")
    with pytest.raises(ModelError, match="took more than 3 s"):
        run_graph(graph, [np.ones((1, 1), np.float32)])


def test_the_run_after_an_interrupt_is_right(monkeypatch):
    tensors = {"x": T((4,), scale=0.1), "y": T((4,), scale=0.1)}
    data = build(tensors, [("RELU", ["x"], ["y"], None)], ["x"], ["y"])
    state, low, high = {}, np.full(4, -5, np.int8), np.full(4, 5, np.int8)
    kernels.run("tflite.model", [low], attributes(data), state)

    def interrupted(stream):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runtime, "receive", interrupted)
        kernels.run("tflite.model", [high], attributes(data), state)
    assert kernels.run("tflite.model", [low], attributes(data), state)[0].tolist() == [0] * 4


def test_models_are_released(rng):
    tensors = {"x": T((4,), scale=0.1), "y": T((4,), scale=0.1)}
    data = build(tensors, [("RELU", ["x"], ["y"], None)], ["x"], ["y"])
    state = {}
    kernels.run("tflite.model", [np.zeros(4, np.int8)], attributes(data), state)
    process = state["model"].process
    state.clear()
    gc.collect()
    assert len(process._forgotten) == 1
    kernels.run("tflite.model", [np.zeros(4, np.int8)], attributes(data))
    assert process._forgotten == [] or process.alive()


def test_products_beside_the_runtime(rng):
    """A product, an operator of the runtime, a product: the whole file."""
    tensors = {
        "x": T((1, 8), scale=0.05), "w": T(data=rng.integers(-128, 128, (6, 8)).astype(np.int8),
                                            scale=0.01),
        "h": T((1, 6), scale=0.1), "l": T((1, 6), scale=1 / 128),
        "v": T(data=rng.integers(-128, 128, (5, 6)).astype(np.int8), scale=0.01),
        "y": T((1, 5), scale=0.02),
    }
    fc = "FullyConnectedOptions", {}
    data = build(tensors, [
        ("FULLY_CONNECTED", ["x", "w"], ["h"], fc),
        ("L2_NORMALIZATION", ["h"], ["l"], ("L2NormOptions", {})),
        ("FULLY_CONNECTED", ["l", "v"], ["y"], fc),
    ], ["x"], ["y"])
    graph = load(data, "net")
    assert [isinstance(node, Gemm) for node in graph.nodes] == [True, False, True]
    x = rng.integers(-128, 128, (1, 8)).astype(np.int8)
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], micro(data, [x])[0])


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(runtime.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(runtime._Process, "running", {})
    with pytest.raises(ModelError, match=r"\(X\) needs the package tflite-micro, .*; type"):
        kernels.run("tflite.model", [], attributes(b""))


def odd(name, inputs, outputs, options=None, version=2):
    tensors = {f"i{i}": t for i, t in enumerate(inputs)}
    tensors |= {f"o{i}": t for i, t in enumerate(outputs)}
    ins, outs = list(tensors)[: len(inputs)], list(tensors)[len(inputs) :]
    fed = [key for key in ins if tensors[key].data is None]
    return build(tensors, [(name, ins, outs, options, version)], fed, outs)


def i8(*shape):
    return T(shape, scale=0.05, zero=3)


def ints(*shape, dtype="int32"):
    return T(shape, dtype)


def floats(*shape):
    return T(shape, "float32")


def i16(*shape):
    return T(shape, "int16", scale=0.001)


CONSTANT = T(data=np.array([0], np.int32))
ODD = {
    "cast to int64": ("CAST", [floats(4)], [ints(4, dtype="int64")], ("CastOptions", {})),
    "cast to int16": ("CAST", [floats(4)], [T((4,), "int16")], ("CastOptions", {})),
    "int64 indices": ("GATHER_ND", [i8(3, 4), ints(1, 2, dtype="int64")], [i8(1)],
                      ("GatherNdOptions", {})),
    "indices": ("GATHER_ND", [i8(3, 4), ints(1, 2)], [i8(1)], ("GatherNdOptions", {})),
    "batch of a gather": ("GATHER", [i8(2, 3, 4), T(data=np.array([[0, 1], [1, 2]], np.int32))],
                          [i8(2, 2, 4)], ("GatherOptions", {"axis": 1, "batchDims": 1}), 5),
    "divisors": ("DIV", [i8(4), i8(4)], [i8(4)], ("DivOptions", {})),
    "whole divisors": ("DIV", [ints(4), ints(4)], [ints(4)], ("DivOptions", {})),
    "logarithm": ("LOG", [floats(4)], [floats(4)]),
    "root": ("RSQRT", [T((4,), scale=0.05, zero=-127)], [i8(4)]),
    **{name: (name, [i8(4)], [i8(4)]) for name in ("NEG", "LOG", "ZEROS_LIKE")},
    **{f"{name} of int16": (name, [i16(4)], [i16(4)]) for name in ("EXP", "HARD_SWISH", "RELU")},
    "PRELU of int16": ("PRELU", [i16(2, 4), i16(1, 4)], [i16(2, 4)]),
    "EQUAL of int16": ("EQUAL", [i16(4), i16(4)], [T((4,), "bool")]),
    "a joint activation": ("CONCATENATION", [i8(1, 2), i8(1, 2)], [i8(1, 4)],
                           ("ConcatenationOptions", {"axis": 1, "fusedActivationFunction": 1})),
    "computed padding": ("PAD", [i8(2, 4), ints(2, 2)], [i8(2, 4)], ("PadOptions", {})),
    "computed axes": ("SUM", [floats(2, 4), ints(1)], [floats(2)], ("ReducerOptions", {})),
    "bytes of a norm": ("L2_POOL_2D", [i8(1, 2, 2, 1)], [i8(1, 1, 1, 1)], ("Pool2DOptions", {
        "filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2, "padding": 1})),
    "a mean of int32": ("MEAN", [ints(2, 4), CONSTANT], [ints(4)], ("ReducerOptions", {})),
}
REFUSED = {
    "cast to int64", "int64 indices", "NEG", "LOG", "EXP of int16", "HARD_SWISH of int16",
    "PRELU of int16", "EQUAL of int16", "a joint activation", "computed padding",
    "bytes of a norm", "a mean of int32",
}


@pytest.mark.parametrize("case", ODD)
def test_an_operator_is_refused_when_the_file_is_loaded_or_never(rng, case):
    """What the runtime refuses is an error with the operator and both reasons."""
    data = odd(*ODD[case])
    if case in REFUSED:
        text = rf"net: operator 0 \({ODD[case][0]}, 'o0'\): .*, and TFLite Micro reports: "
        with pytest.raises(ModelError, match=text):
            load(data, "net")
        return
    graph = load(data, "net")
    x = [np.ones(t.shape, t.dtype) for t in (graph.tensors[i] for i in graph.inputs)]
    assert np.array_equal(
        run_graph(graph, x)[graph.outputs[0]], micro(data, x)[0], equal_nan=True
    )


def test_a_trial_ends_no_session(monkeypatch):
    """A crash of a trial leaves the process of the models that run."""
    tensors = {"x": T((4,), scale=0.1), "y": T((4,), scale=0.1)}
    given = attributes(build(tensors, [("RELU", ["x"], ["y"], None)], ["x"], ["y"]))
    state = {}
    kernels.run("tflite.model", [np.zeros(4, np.int8)], given, state)
    process = state["model"].process
    runtime.attempt(given, [])
    tried = runtime._Process.running[runtime.TRIAL]
    tried._process.kill()
    tried._process.wait()
    kernels.run("tflite.model", [np.zeros(4, np.int8)], given, state)
    assert state["model"].process is process is not tried


def test_without_the_package_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(runtime.importlib.util, "find_spec", lambda name: None)
    [node] = load(odd(*ODD["NEG"]), "net").nodes
    assert node.kernel == "tflite.model"
