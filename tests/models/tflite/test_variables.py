"""Variables of a file, over several inferences, on both kinds of cores, against TFLite Micro."""

import numpy as np
import pytest
from network_cores import LARGE
from program_files import changed
from tflite_files import T, build, runner

import weft
from weft.config import Config
from weft.models import ModelError
from weft.models.target import target_of
from weft.models.tflite import load

PRODUCTS = Config(rows=4, cols=4, depth=4, a_words=1024, b_words=1024)
HANDLE = ("VAR_HANDLE", [], ["h"], ("VarHandleOptions", {"container": "", "sharedName": "past"}))
READ = ("READ_VARIABLE", ["h"], ["old"], ("ReadVariableOptions", {}))
ONCE = ("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1}))


def assign(value):
    return ("ASSIGN_VARIABLE", ["h", value], [], ("AssignVariableOptions", {}))


def stream(rng, first=None, order=None, **others):
    """A convolution over the last three rows; two of them are a variable."""
    rows = {"scale": 0.05, "zero": 3}
    tensors = {
        "h": T((), "resource"), "row": T((1, 1, 6, 4), **rows), "old": T((1, 2, 6, 4), **rows),
        "all": T((1, 3, 6, 4), **rows), "new": T((1, 2, 6, 4), **rows),
        "b": T(data=np.int32([0, 1, 0, 0])), "e": T(data=np.int32([1, 3, 6, 4])),
        "s": T(data=np.int32([1, 1, 1, 1])),
        "w": T(data=rng.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8), scale=0.01),
        "bias": T(data=rng.integers(-900, 900, 5).astype(np.int32), scale=0.0005),
        "y": T((1, 1, 4, 5), scale=0.03, zero=-4), **others,
    }
    slices = ("StridedSliceOptions", {})
    conv = ("Conv2DOptions", dict(
        padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1
    ))
    operators = [
        HANDLE, READ, ("CONCATENATION", ["old", "row"], ["all"], ("ConcatenationOptions", {
            "axis": 1,
        })),
        ("STRIDED_SLICE", ["all", "b", "e", "s"], ["new"], slices), assign("new"),
        ("CONV_2D", ["all", "w", "bias"], ["y"], conv),
    ]
    extra = []
    if first is not None:
        operators.insert(0, ONCE)
        tensors_of_call = {"h": T((), "resource"), "zeros": T(data=first, **rows)}
        extra = [(tensors_of_call, [HANDLE, assign("zeros")], [], [])]
    operators = [operators[i] for i in order] if order else operators
    return build(tensors, operators, ["row"], ["y"], extra=extra)


def rows_of(rng, count=5):
    return rng.integers(-128, 128, (count, 1, 6, 4)).astype(np.int8)


@pytest.mark.parametrize("target", [PRODUCTS, LARGE])
@pytest.mark.parametrize("given", [False, True])
def test_a_variable_lasts_from_inference_to_inference(rng, target, given):
    first = rng.integers(-128, 128, (1, 2, 6, 4)).astype(np.int8) if given else None
    data, x = stream(rng, first), rows_of(rng)
    oracle = runner(data)
    expected = np.concatenate([oracle(row[None])[0] for row in x])
    network = weft.load(data, "net")
    assert [state.name for state in network.graph.states] == ["past"]
    program = network.compile(target)
    assert any(step.macs > 0 for step in program.steps)
    with program.open("golden") as session:
        found = [session(row[None]) for row in x]
        np.testing.assert_array_equal(np.concatenate(found), expected)
        session.reset()
        np.testing.assert_array_equal(session(x[:2]), expected[:2])  # one after the other
        np.testing.assert_array_equal(session(x[2:]), expected[2:])
    with program.open("golden") as other:  # a session has variables of its own
        np.testing.assert_array_equal(other(x), expected)


@pytest.mark.parametrize("target", [PRODUCTS, LARGE])
def test_a_program_file_has_the_variables(rng, target, tmp_path):
    data, x = stream(rng, np.full((1, 2, 6, 4), 9, np.int8)), rows_of(rng)
    program = weft.load(data, "net").compile(target)
    path = tmp_path / "net.weft"
    program.save(path)
    with program.open("golden") as one, weft.load(path).open("golden") as two:
        np.testing.assert_array_equal(one(x), two(x))

    def wrong(key, value):
        def change(main):
            [state] = main["program"]["fields"]["states"]
            state["fields"][key] = value(state["fields"][key])
        return change

    for change, message in (
        (wrong("initial", lambda v: v | {"shape": [1, 3, 4, 4]}), r"'past' must have one shape"),
        (wrong("after", lambda _: 0), r"'past' must have one shape and type"),
        (wrong("before", lambda _: 99), r"tensors of variable 'past' must be tensors in 0\.\."),
    ):
        with pytest.raises(ModelError, match=message):
            weft.load(changed(path.read_bytes(), change), "net.weft")


def test_stats_and_activations_of_several_inferences(rng):
    data, x = stream(rng), rows_of(rng, 3)
    program = weft.load(data, "net").compile(PRODUCTS, activations=True)
    seen = []
    with program.open("golden") as session:
        y, records, values = session(x, stats=True, activations=True, watch=seen.append)
    assert seen == records and len(records) == len(program.steps)
    assert records[-1].stats.jobs == 3 * program.steps[-1].estimate.jobs
    assert sorted(values) == ["out1", "out2", "out3", "out5"]
    np.testing.assert_array_equal(values["out5"], y)
    np.testing.assert_array_equal(values["out1"][1], values["out3"][0])  # what was assigned


def test_a_failed_call_changes_no_variable(rng, monkeypatch):
    data, x = stream(rng), rows_of(rng)
    program = weft.load(data, "net").compile(PRODUCTS)
    oracle = runner(data)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x[:1])[0], oracle(x[:1])[0][0])
        run, calls = session._runs[-1], []

        def fails(*arguments):
            calls.append(arguments)
            if len(calls) == 2:
                raise RuntimeError("lost")
            return run(*arguments)

        session._runs[-1] = fails
        with pytest.raises(RuntimeError, match="lost"):
            session(x[1:])  # the second inference fails
        session._runs[-1] = run
        expected = np.concatenate([oracle(row[None])[0] for row in x[1:]])
        np.testing.assert_array_equal(session(x[1:]), expected)


def test_a_variable_does_not_change_with_the_callers_array(rng):
    """The variable is the input itself."""
    tensors = {"h": T((), "resource"), "x": T((1, 4), scale=1), "old": T((1, 4), scale=1)}
    data = build(tensors, [HANDLE, READ, assign("x")], ["x"], ["old"])
    x = np.int8([[1, 2, 3, 4]])
    with weft.load(data, "net").compile(PRODUCTS).open("golden") as session:
        session(x)
        x[...] = 7
        assert session(x).tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("target", [PRODUCTS, LARGE])
def test_a_variable_gets_the_result_of_a_layer(rng, target):
    """Only an addition reads the result, and it cannot be a part of the layer."""
    maps = {name: T((1, 3, 3, 8), scale=0.1, zero=2) for name in ("x", "old", "now", "y")}
    tensors = maps | {
        "h": T((), "resource"),
        "w": T(data=rng.integers(-127, 128, (8, 1, 1, 8)).astype(np.int8), scale=0.01),
        "bias": T(data=rng.integers(-900, 900, 8).astype(np.int32), scale=0.001),
    }
    conv = ("Conv2DOptions", dict(
        padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1
    ))
    data = build(tensors, [
        HANDLE, READ, ("CONV_2D", ["x", "w", "bias"], ["now"], conv), assign("now"),
        ("ADD", ["now", "old"], ["y"], ("AddOptions", {})),
    ], ["x"], ["y"])
    oracle, x = runner(data), rng.integers(-128, 128, (4, 3, 3, 8)).astype(np.int8)
    with weft.load(data, "net").compile(target).open("golden") as session:
        np.testing.assert_array_equal(session(x), np.concatenate([oracle(v[None])[0] for v in x]))


def test_an_inference_reads_what_it_has_assigned(rng):
    """Two reads, before and after; two variables would not be equal."""
    tensors = {
        "h": T((), "resource"), "x": T((1, 4), scale=1), "old": T((1, 4), scale=1, zero=5),
        "now": T((1, 4), scale=1), "twice": T((1, 4), scale=2),
    }
    again = ("READ_VARIABLE", ["h"], ["now"], ("ReadVariableOptions", {}))
    add = ("ADD", ["now", "x"], ["twice"], ("AddOptions", {}))
    data = build(
        tensors, [HANDLE, READ, assign("x"), again, add, assign("twice")], ["x"], ["old", "twice"]
    )
    oracle = runner(data, 2)
    with weft.load(data, "net").compile(PRODUCTS).open("golden") as session:
        for x in rng.integers(-60, 60, (3, 1, 4)).astype(np.int8):
            for found, expected in zip(session(x), oracle(x), strict=True):
                np.testing.assert_array_equal(found, expected)


def test_a_core_for_networks_computes_one_inference_at_once(rng):
    with pytest.raises(ModelError, match=r"net: batch must be 1, not 2: an inference needs"):
        weft.load(stream(rng), "net").compile(LARGE, batch=2)


def test_c_code_has_no_variables(rng):
    from weft.models.c_code.generator import c_files

    network = weft.load(stream(rng), "net")
    with pytest.raises(ModelError, match="variable past: no C code"):
        c_files(network.graph, network.compile(PRODUCTS))


def test_claims_of_the_first_line(rng):
    """LiteRT gives a variable no first value; the file may give it one."""
    single = target_of(Config(rows=4, cols=4, depth=4, requantize="single"))
    text = "not READ_VARIABLE: in LiteRT the variable has no first value"
    for first in (None, np.zeros((1, 2, 6, 4), np.int8)):
        network = weft.load(stream(rng, first), "net")
        assert (text in network.compile(single).exactness.claim) == (first is None)
        assert network.compile(PRODUCTS).exactness.claim == "equal to TFLite Micro in mode tflite"


def test_differences_add_up(rng):
    """An average of two rounds ties in LiteRT; its result is an input of the next one."""
    tensors = {
        "h": T((), "resource"), "x": T((1, 4), "int16", scale=1),
        "old": T((1, 4), "int16", scale=1), "y": T((1, 4), "int16", scale=2),
    }
    add = ("ADD", ["old", "x"], ["y"], ("AddOptions", {"potScaleInt16": False}))
    data = build(tensors, [HANDLE, READ, add, assign("y")], ["x"], ["y"])
    single = target_of(Config(rows=4, cols=4, depth=4, requantize="single"))
    exactness = weft.load(data, "net").compile(single).exactness
    assert "differences in variables add up from inference to inference" in exactness.claim
    assert exactness.absolute == (2.0,)


@pytest.mark.parametrize("order, message", [
    ([1, 2, 0, 3, 4, 5, 6], "CALL_ONCE follows other operators of its variables"),
    (None, "CALL_ONCE does more than assigning constants"),
])
def test_the_runtime_has_files_with_other_calls(rng, order, message):
    if order:
        data = stream(rng, np.zeros((1, 2, 6, 4), np.int8), order)
    else:
        one, rows = T(data=np.ones((1, 4), np.int8), scale=1), {"scale": 1}
        part = {"h": T((), "resource"), "a": T((1, 4), **rows), "b": one}
        call = part, [HANDLE, ("ABS", ["b"], ["a"], None), assign("a")], [], []
        tensors = {"h": T((), "resource"), "x": T((1, 4), **rows), "old": T((1, 4), **rows)}
        data = build(tensors, [ONCE, HANDLE, READ, assign("x")], ["x"], ["old"], extra=[call])
    graph = load(data, "net")
    [node] = graph.nodes
    assert node.kernel == "tflite.model" and node.reason.endswith(message) and not graph.states


def test_values_of_different_shapes_are_for_the_runtime(rng):
    data = stream(rng, np.zeros((1, 2, 4, 6), np.int8))
    assert load(data, "net").nodes[0].reason.endswith("values of different shapes or types")


def test_rejects_a_called_subgraph_that_is_not_there(rng):
    tensors = {"h": T((), "resource"), "x": T((1, 4)), "old": T((1, 4))}
    data = build(tensors, [ONCE, HANDLE, READ, assign("x")], ["x"], ["old"])
    with pytest.raises(ModelError, match=r"a called subgraph must be in 0\.\.0, not 1"):
        load(data, "net")


@pytest.mark.parametrize("operators, message", [
    ([HANDLE, assign("z"), READ], "READ_VARIABLE.*: input 'z' must be computed before"),
    ([HANDLE, READ, assign("z")], "the value of variable past 'z' must be computed"),
    ([READ, assign("x")], r"READ_VARIABLE, 'old'\): input 0 must be the output of a VAR_HANDLE"),
])
def test_rejects_values_that_no_operator_computes(operators, message):
    tensors = {"h": T((), "resource"), "x": T((1, 4)), "old": T((1, 4)), "z": T((1, 4))}
    with pytest.raises(ModelError, match=message):
        load(build(tensors, operators, ["x"], ["old"]), "net")
