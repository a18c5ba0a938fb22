"""Operators with a state, over several runs, against TFLite Micro."""

import re

import numpy as np
import pytest
from graph_runner import run_graph
from lstm_files import lstm
from tflite_files import T, build, runner

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.program import MatrixProduct
from weft.models.tflite import load


def svdf(rng):
    return {
        "x": T((1, 6), scale=0.05, zero=0),
        "f": T(data=rng.integers(-128, 128, (8, 6)).astype(np.int8), scale=0.01),
        "t": T(data=rng.integers(-3000, 3000, (8, 4)).astype(np.int16), scale=0.0001),
        "b": T(data=rng.integers(-900, 900, 4).astype(np.int32)),
        "s": T((1, 32), "int16", scale=0.001, variable=True),
        "y": T((1, 4), scale=0.02),
    }


def same_over_runs(rng, data, graph, count=8):
    """Several runs, beside a second session and runs that begin anew."""
    shape = graph.tensors[graph.inputs[0]].shape
    oracle, states, others = runner(data), {}, {}
    anew = []
    for _ in range(count):
        limits = np.iinfo(graph.tensors[graph.inputs[0]].dtype)
        x = rng.integers(limits.min, limits.max, shape, limits.dtype)
        y = run_graph(graph, [x], states)[graph.outputs[0]]
        assert np.array_equal(y, oracle(x)[0])
        anew.append(np.array_equal(run_graph(graph, [x], {})[graph.outputs[0]], y))
        run_graph(graph, [x], others)
    assert not all(anew)


@pytest.mark.parametrize("kind, zero, batch", [
    ("int16", 0, 1), ("int16", 0, 3), ("int8", 0, 1), ("int8", -7, 2), ("int8", 100, 2),
])
def test_svdf_is_a_product_and_a_state(rng, kind, zero, batch):
    """A zero point of the state wraps what exceeds a byte."""
    tensors = svdf(rng)
    if kind == "int8":
        time = rng.integers(-128, 128, (8, 4)).astype(np.int8)
        tensors["t"] = T(data=time, scale=0.01)
        tensors["s"] = T((1, 32), "int8", scale=0.02, zero=zero, variable=True)
        tensors["b"].scale = 0.0002
    for key, width in (("x", 6), ("s", 32), ("y", 4)):
        tensors[key].shape = batch, width
    tensors["x"].zero, tensors["y"].zero = -11, -128
    inputs = ["x", "f", "t", "b", "s"]
    options = "SVDFOptions", {"rank": 2, "fusedActivationFunction": 1}
    data = build(tensors, [("SVDF", inputs, ["y"], options)], ["x"], ["y"])
    graph = load(data, "net")
    assert [getattr(node, "kernel", "gemm") for node in graph.nodes] == ["gemm", "tflite.svdf"]
    assert [node.position for node in graph.nodes] == [(0,), (0,)]
    assert graph.nodes[1].macs == batch * 32  # the filter in time
    same_over_runs(rng, data, graph)


@pytest.mark.parametrize("options", [
    dict(batch=1, time=5), dict(batch=3, time=4), dict(batch=3, time=4, major=True),
    dict(batch=1, time=20, clip=0.3), dict(batch=1, time=20, clip=0.0, cell=2**-15),
    dict(batch=1, time=20, clip=0.3, cell=2**-9),  # 153.6 steps of the cell; 153 are its limit
    dict(batch=2, time=9, cell=2**-9), dict(batch=1, time=6, units=9, size=3, zero=-128),
    dict(batch=1, time=9, kind="int16", zero=0, x_zero=0),
    dict(batch=2, time=5, kind="int16", zero=0, x_zero=0, major=True, clip=0.3),
])
def test_lstm_is_a_product_and_a_recurrence(rng, options):
    data = lstm(rng, **options)
    graph = load(data, "net")
    assert [getattr(node, "kernel", "gemm") for node in graph.nodes] == ["gemm", "tflite.lstm"]
    same_over_runs(rng, data, graph)


@pytest.mark.parametrize("options, rows", [({}, 2), (dict(kind="int16", zero=0, x_zero=0), 4)])
def test_lstm_on_a_core_has_a_product_for_each_step(rng, tmp_path, options, rows):
    """Values of int16 are two rows of int8."""
    data = lstm(rng, 2, 5, **options)
    config = Config(rows=3, cols=4, depth=2, lanes=2, a_words=64, b_words=128)
    program = compile_graph(load(data, "net"), config)
    assert all(step.placement.on_weft for step in program.steps)
    assert sum(step.macs for step in program.steps) == 10 * 16 * (6 + 4)
    assert program.steps[1].products == (MatrixProduct(rows, 4, 16, 5),)
    program.save(tmp_path / "net.weft")
    oracle = runner(data)
    with weft.load(tmp_path / "net.weft").open(GoldenTransport(config)) as session:
        for _ in range(4):
            x = rng.integers(-128, 128, (2, 5, 6)).astype(options.get("kind", "int8"))
            x *= 127 if rows == 4 else 1
            assert np.array_equal(session(x), oracle(x)[0])


LITE = bytes.fromhex(  # of LiteRT 2.3
    "26f10a0b01eefdfd01f6dffc22dfe6ec0ddf011ee900e30123faf51625ecfd1a04e2e1f0fb08f0fbe4eb240106fbf1"
    "1b0000de0125eceaed1dec02f425fd06f5000b05ff230404f10407f8e80f03feef0b02110702250f2508fcf21cf4fd"
    "df00"
)


def test_lstm_in_mode_single_has_the_bytes_of_litert():
    """Other rounding and other functions than those of TFLite Micro."""
    rng = np.random.default_rng(7)
    data = lstm(rng, 1, 24, cell=2**-9, clip=0.3, scales=(0.0173, 0.0081))
    graph = load(data, "net")
    x = rng.integers(-128, 128, (1, 24, 6)).astype(np.int8)
    lite = np.frombuffer(LITE, np.int8).reshape(1, 24, 4)
    micro = runner(data)(x)[0]
    assert (lite != micro).any()
    for mode, expected in (("single", lite), ("tflite", micro)):
        config = Config(rows=2, cols=4, a_words=64, b_words=128, requantize=mode)
        with compile_graph(graph, config).open(GoldenTransport(config)) as session:
            np.testing.assert_array_equal(session(x), expected)


def test_a_limit_below_a_step_of_the_cell(rng):
    """The cell of TFLite Micro is 0; LiteRT has no limit then."""
    data = lstm(rng, 1, 9, clip=0.0003)
    graph = load(data, "net")
    x = rng.integers(-128, 128, (1, 9, 6)).astype(np.int8)
    y = run_graph(graph, [x], {})[graph.outputs[0]]
    np.testing.assert_array_equal(y, runner(data)(x)[0])
    assert (y == 2).all()  # the zero point
    assert len(np.unique(run_graph(graph, [x], {}, mode="single")[graph.outputs[0]])) > 9


@pytest.mark.parametrize("options", [
    dict(cell=2**-8), dict(cell=2**-16), dict(kind="int16", zero=0, x_zero=0),
])
def test_mode_single_of_lstms_that_litert_does_not_have(rng, options):
    data = lstm(rng, 1, 9, **options)
    graph = load(data, "net")
    shape, kind = graph.tensors[graph.inputs[0]].shape, graph.tensors[graph.inputs[0]].dtype
    x = (rng.integers(-128, 128, shape) << 8 * kind.itemsize - 8).astype(kind)
    y = run_graph(graph, [x], mode="single")[graph.outputs[0]]
    assert np.array_equal(y, runner(data)(x)[0])


@pytest.mark.parametrize("batch, options", [(1, {}), (2, dict(major=True, clip=0.3))])
def test_lstm_of_float32(rng, batch, options):
    """Close to TFLite Micro: in numpy, and on a core of bf16; its state lasts."""
    data = lstm(rng, batch, 7, kind="float32", x_zero=0, zero=0, **options)
    graph, oracle, states = load(data, "net"), runner(data), {}
    assert graph.nodes[1].kernel == "tflite.float_lstm"
    config = Config(dtype="bf16", rows=2, cols=4, a_words=64, b_words=128, c_words=64)
    program = compile_graph(graph, config)
    assert all(step.placement.on_weft for step in program.steps)
    xs = rng.normal(size=(3, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    expected = np.stack([oracle(x)[0] for x in xs])
    found = [run_graph(graph, [x], states)[graph.outputs[0]] for x in xs]
    np.testing.assert_allclose(found, expected, atol=2e-6)
    with program.open(GoldenTransport(config)) as session:
        y = session(xs[:, 0]) if batch == 1 else np.stack([session(x) for x in xs])
    np.testing.assert_allclose(y.reshape(expected.shape), expected, atol=2**-6)


@pytest.mark.parametrize("absent, present, reason", [
    ([1, 5, 12], [], "an LSTM without an input gate (CIFG)"),
    ([], [9, 10, 11], "an LSTM with peepholes"),
    ([], [16], "an LSTM with a projection"),
    ([], [20, 21, 22, 23], "an LSTM with a normalization"),
])
def test_lstm_with_other_parts_is_refused(rng, absent, present, reason):
    """TFLite Micro does not have them either."""
    with pytest.raises(ModelError, match=f"{re.escape(reason)}, and TFLite Micro reports: "):
        load(lstm(rng, 1, 3, absent=absent, present=present), "net")


@pytest.mark.parametrize("options, reason", [
    (dict(state="int16"), "no kernel for int8, int16, int16, int8"),
    (dict(present=[13]), "input 13 is int8, not int32"),
])
def test_lstm_of_other_types_is_refused(rng, options, reason):
    with pytest.raises(ModelError, match=f"{reason}, and TFLite Micro reports: "):
        load(lstm(rng, 1, 3, **options), "net")


@pytest.mark.parametrize("options, reason", [
    (dict(kind="int16", zero=0), "int16 with a zero point"),
    (dict(activation=1), "an LSTM whose activation is not TANH"),
])
def test_lstm_of_other_kinds_stays_on_the_host(rng, options, reason):
    [node] = load(lstm(rng, 1, 3, **options), "net").nodes
    assert (node.kernel, node.reason) == ("tflite.model", reason)


@pytest.mark.parametrize("options, message", [
    (dict(cell=0.001), "scale of the cell must be a power of two"),
    (dict(clip=-1.0), "limit of the cell must be 0 or above, not -1.0"),
    (dict(shape=(2, 4)), r"input 18 must be a variable of \(1, 4\)"),
    (dict(shape=(1, 1, 4)), "input must have 3 dimensions and the state 2, not"),
    (dict(shape=(1, 0)), "input and state must have elements, not"),
    (dict(present=[3]), r"input 3 must be of shape \(4, 6\), not \(4,\)"),
])
def test_lstm_rejects(rng, options, message):
    with pytest.raises(ModelError, match=message):
        load(lstm(rng, 1, 5, **options), "net")
