"""Recurrent layers against onnxruntime: in numpy, and on cores of both data types."""

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, require, run_runtime

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.ir import Gemm
from weft.models.onnx import load
from weft.models.program import MatrixProduct

F32 = np.float32
TIME, BATCH, SIZE, UNITS = 5, 3, 6, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
BF16 = Config(dtype="bf16", rows=2, cols=4, a_words=64, b_words=128, c_words=64)


def layer(kind, *, bias=True, lengths="", start=False, wanted=None, seed=50, **attributes):
    """A file of one layer, and its input; ``wanted`` : places of the outputs."""
    require("onnx", "onnxruntime")
    b = Builder(seed=seed, domains=())
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    columns, outputs = GATES[kind] * UNITS, 3 if kind == "LSTM" else 2
    names = [
        b.input("x", [TIME, BATCH, SIZE]), b.weights(count, columns, SIZE, scale=0.4),
        b.weights(count, columns, UNITS, scale=0.4),
        b.weights(count, 2 * columns, scale=0.4) if bias else "", lengths,
    ]
    states = [b.weights(count, BATCH, UNITS, scale=0.4) for _ in range(outputs - 1)]
    y = b.node(
        kind, *names, *(states if start else [""]), outputs=outputs, hidden_size=UNITS, **attributes
    )
    places = range(outputs) if wanted is None else wanted
    for place in {*range(outputs)} - {*places}:
        b.nodes[-1].output[place] = ""
    return b.bytes(*(y[place] for place in places)), b.rng.normal(size=(TIME, BATCH, SIZE))


def kinds_of(graph):
    return [n.operator if isinstance(n, Gemm) else n.kernel for n in graph.nodes]


LAYERS = [
    ("LSTM", {}), ("GRU", {}), ("RNN", {}),
    ("LSTM", dict(direction="reverse", start=True, bias=False)),
    ("LSTM", dict(direction="bidirectional", start=True, lengths=np.int32([5, 2, 0]))),
    ("LSTM", dict(wanted=[1], activations=["Sigmoid", "tanh", "Tanh"])),
    ("GRU", dict(linear_before_reset=1, start=True)),
    ("GRU", dict(direction="bidirectional", linear_before_reset=1, lengths=np.int32([1, 5, 3]))),
    ("GRU", dict(direction="bidirectional", start=True, lengths=np.int32([4, 0, 5]))),
    ("GRU", dict(direction="reverse", bias=False, wanted=[0])),
    ("RNN", dict(direction="bidirectional", start=True)),
]


@pytest.mark.parametrize("kind, options", LAYERS)
def test_a_layer_is_a_product_of_its_inputs_and_a_recurrence(kind, options):
    data, x = layer(kind, **options)
    graph, x = load(data, "net.onnx"), x.astype(F32)
    assert kinds_of(graph) == [kind, f"onnx.{kind.lower()}"]
    assert [node.position for node in graph.nodes] == [(0,), (0,)]
    values, expected = run_graph(graph, [x]), run_runtime(data, [x])
    assert len(expected) == len(graph.outputs)
    for number, wanted in zip(graph.outputs, expected, strict=True):
        assert (values[number].dtype, values[number].shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(values[number], wanted, atol=2e-6)


@pytest.mark.parametrize("kind, options", [LAYERS[n] for n in (4, 7, 8)])
@pytest.mark.parametrize("config", [
    BF16, Config(rows=2, cols=2, a_words=64, b_words=64),
], ids=["bf16", "int8"])
def test_a_layer_on_a_core(kind, options, config, tmp_path):
    """From a program file; a core of int8 leaves products of float32 to the host."""
    data, x = layer(kind, **options)
    program = compile_graph(load(data, "net.onnx"), config)
    on_weft = config.dtype == "bf16"
    assert {step.placement.on_weft for step in program.steps} == {on_weft}
    macs = 2 * GATES[kind] * UNITS * TIME * BATCH * (SIZE + UNITS)
    assert sum(step.macs for step in program.steps) == macs
    program.save(tmp_path / "net.weft")
    with weft.load(tmp_path / "net.weft").open(GoldenTransport(config)) as session:
        results, records = session(x, stats=True)
    assert (records[1].stats is not None) == on_weft
    for y, wanted in zip(results, run_runtime(data, [x.astype(F32)]), strict=True):
        np.testing.assert_allclose(y, wanted, atol=2**-6 if on_weft else 2e-6)


@pytest.mark.parametrize("linear", [0, 1])
def test_a_bf16_core_rounds_operands_alone(linear):
    """A GRU of 30 steps in float64, with weights, inputs and states rounded to bfloat16."""
    require("onnx", "ml_dtypes")
    import ml_dtypes

    def rounded(value):
        return value.astype(F32).astype(ml_dtypes.bfloat16).astype(np.float64)

    def sigmoid(value):
        return 1 / (1 + np.exp(-value))

    b, steps = Builder(seed=60, domains=()), 30
    x = b.rng.normal(size=(steps, BATCH, SIZE)).astype(F32)
    w, r = (b.rng.normal(0, 1, (1, 3 * UNITS, n)).astype(F32) for n in (SIZE, UNITS))
    y = b.node(
        "GRU", b.input("x", x.shape), w, r, outputs=2, hidden_size=UNITS,
        linear_before_reset=linear,
    )
    program = compile_graph(load(b.bytes(y[0]), "net.onnx"), BF16)
    with program.open(GoldenTransport(BF16)) as session:
        found = session(x)
    fed, own = rounded(x) @ rounded(w[0]).T, rounded(r[0]).T
    h, gates = np.zeros((BATCH, UNITS)), 2 * UNITS
    for step in range(steps):
        sums = rounded(h) @ own
        z, reset = np.split(sigmoid(fed[step, :, :gates] + sums[:, :gates]), 2, axis=1)
        after = reset * sums[:, gates:] if linear else rounded(reset * h) @ own[:, gates:]
        h = (1 - z) * np.tanh(fed[step, :, gates:] + after) + z * h
        np.testing.assert_allclose(found[step, 0], h, atol=2e-6)


def test_the_products_of_a_step_in_time():
    linear, _ = layer("GRU", linear_before_reset=1)
    other, _ = layer("GRU", direction="bidirectional")
    found = [
        compile_graph(load(data, "net.onnx"), BF16).steps[1].products for data in (linear, other)
    ]
    gates, new = (MatrixProduct(BATCH, UNITS, n * UNITS, TIME) for n in (2, 1))
    assert found == [(MatrixProduct(BATCH, UNITS, 3 * UNITS, TIME),), (gates, new, gates, new)]


def test_lengths_may_be_an_input():
    b = Builder(seed=51, domains=())
    require("onnx", "onnxruntime")
    x, lengths = b.input("x", [TIME, BATCH, SIZE]), b.input("lengths", [BATCH], np.int32)
    weights = b.weights(1, 3 * UNITS, SIZE), b.weights(1, 3 * UNITS, UNITS)
    data = b.bytes(b.node("GRU", x, *weights, "", lengths, hidden_size=UNITS))
    graph, values = load(data, "net.onnx"), b.rng.normal(size=(TIME, BATCH, SIZE)).astype(F32)
    inputs = [values, np.int32([2, 5, 1])]
    [expected] = run_runtime(data, inputs)
    np.testing.assert_allclose(run_graph(graph, inputs)[graph.outputs[0]], expected, atol=2e-6)
    with pytest.raises(ModelError, match=r"sequence_lens must be in 0\.\.5, not 6"):
        run_graph(graph, [values, np.int32([2, 6, 1])])


@pytest.mark.parametrize("kind, options, reason", [
    ("LSTM", dict(activations=["Sigmoid", "Relu", "Tanh"]),
     "LSTM with the activations Sigmoid, Relu, Tanh"),
    ("GRU", dict(clip=0.5), "GRU with a limit (clip)"),
    ("LSTM", dict(input_forget=1), "LSTM with coupled gates (input_forget)"),
    ("RNN", dict(activations=["Relu"]), "RNN with the activations Relu"),
])
def test_a_layer_without_a_kernel_runs_in_onnxruntime(kind, options, reason):
    data, x = layer(kind, **options)
    graph, x = load(data, "net.onnx"), x.astype(F32)
    [node] = graph.nodes
    assert (node.kernel, node.reason) == ("onnx.model", f"{reason}: onnxruntime computes it")
    values = run_graph(graph, [x])
    for number, wanted in zip(graph.outputs, run_runtime(data, [x]), strict=True):
        np.testing.assert_array_equal(values[number], wanted)


def changed(change):
    """A file of an LSTM, after ``change(builder, names)``; names of its inputs."""
    require("onnx", "onnxruntime")
    b = Builder(seed=52, domains=())
    names = [
        b.input("x", [TIME, BATCH, SIZE]), b.weights(1, 4 * UNITS, SIZE),
        b.weights(1, 4 * UNITS, UNITS), "", "", "", "", "",
    ]
    attributes = change(b, names) or {}
    return b.bytes(b.node("LSTM", *names, hidden_size=UNITS, **attributes))


def replaced(place, make):
    def change(b, names):
        names[place] = make(b)

    return change


@pytest.mark.parametrize("change, reason", [
    (replaced(7, lambda b: b.weights(1, 3 * UNITS)), "LSTM with peepholes"),
    (replaced(2, lambda b: b.input("r", [1, 4 * UNITS, UNITS])), "weights or biases are computed"),
    (replaced(3, lambda b: b.input("b", [1, 8 * UNITS])), "weights or biases are computed"),
    (replaced(0, lambda b: b.node("Slice", "x", np.int64([0]), np.int64([0]), np.int64([0]))),
     "LSTM without elements"),
])
def test_other_inputs_stay_on_the_host(change, reason):
    node = load(changed(change), "net.onnx").nodes[-1]
    assert (node.kernel, node.reason) == ("onnx.model", f"{reason}: onnxruntime computes it")


def test_rejects_what_onnxruntime_has_not():
    require("onnx", "onnxruntime")
    text = (
        r"net.onnx: node LSTM0 \(LSTM\): LSTM whose first axis is the batch \(layout\): onnxruntime"
        r" computes it; but onnxruntime cannot load LSTM: .*layout_ == 0"
    )
    with pytest.raises(ModelError, match=text):
        load(changed(lambda b, names: {"layout": 1}), "net.onnx")


def test_rejects_double_precision():
    require("onnx", "onnxruntime")
    b = Builder(seed=53, domains=())
    weights = (b.constant(b.rng.normal(size=(1, UNITS, n))) for n in (SIZE, UNITS))
    x = b.input("x", [TIME, BATCH, SIZE], np.float64)
    data = b.bytes(b.node("RNN", x, *weights, hidden_size=UNITS), dtype=np.float64)
    text = r"net.onnx: node RNN0 \(RNN\): a product of float64: onnxruntime computes it; but"
    with pytest.raises(ModelError, match=text):
        load(data, "net.onnx")


@pytest.mark.parametrize("place, shape, message", [
    (2, (1, 4 * UNITS + 1, UNITS), r"R must be of shape \(1, 16, 4\), not \(1, 17, 4\)"),
    (5, (1, BATCH + 1, UNITS), r"initial_h must be of shape \(1, 3, 4\), not \(1, 4, 4\)"),
])
def test_rejects_constants_that_do_not_fit(place, shape, message):
    with pytest.raises(ModelError, match=message):
        load(changed(replaced(place, lambda b: b.weights(*shape))), "net.onnx")
