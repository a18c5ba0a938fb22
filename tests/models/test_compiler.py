"""Compiled graphs on the golden transport, against plain numpy."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import chain, convolution, fully_connected, graph_of, lstm, pair, table_of, tensor
from products import integers

from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.ir import Gemm, Host
from weft.models.program import MatrixProduct

SMALL = Config(rows=3, cols=4, depth=2, lanes=2, a_words=128, b_words=256)
COLUMN = dataclasses.replace(SMALL, b_zero_point="column")


def run(program, *x, **options):
    with program.open(GoldenTransport(program.target.array)) as session:
        return session(list(x), **options)


def check(graph, config, *, seed=1, mode=None, count=1):
    """The program, after its outputs were compared with numpy's, for ``count`` inferences."""
    rng = np.random.default_rng(seed)
    program = compile_graph(graph, config)
    inputs = [
        integers(rng, graph.tensors[n].dtype, count, *graph.tensors[n].shape) for n in graph.inputs
    ]
    joined = [x[0] if count == 1 else x.reshape(-1, *x.shape[2:]) for x in inputs]
    y = run(program, *joined)
    expected = [
        run_graph(graph, [x[i] for x in inputs], mode=mode or program.mode)[graph.outputs[0]]
        for i in range(count)
    ]
    np.testing.assert_array_equal(np.reshape(y, np.shape(expected)), expected)
    return program


@pytest.mark.parametrize("count", [1, 3])
def test_fully_connected_layers(count):
    program = check(chain(np.random.default_rng(1)), SMALL, count=count)
    assert [step.placement.on_weft for step in program.steps] == [True] * 3
    assert program.steps[0].macs == 20 * 30


@pytest.mark.parametrize("groups, columns, layout", [
    (1, 5, "NHWC"), (6, 1, "NHWC"), (6, 1, "NCHW"), (3, 2, "NHWC"),
])
@pytest.mark.parametrize("count", [1, 2])
def test_convolutions(groups, columns, layout, count):
    rng = np.random.default_rng(2)
    shape = (1, 5, 7, 6) if layout == "NHWC" else (1, 6, 5, 7)
    tensors = [tensor(shape, zero=-9)]
    node = convolution(
        rng, 0, tensors, columns, groups=groups, stride=(1, 2), layout=layout
    )
    check(graph_of([node], tensors), SMALL, count=count)


@pytest.mark.parametrize("config", [SMALL, COLUMN])
@pytest.mark.parametrize("groups", [1, 4])
def test_zero_points_of_weights(config, groups):
    rng = np.random.default_rng(3)
    tensors = [tensor((1, 4, 5, 4), np.uint8, zero=130)]
    node = convolution(
        rng, 0, tensors, 4 // groups, groups=groups, w_dtype=np.uint8, w_zero=121, dtype=np.uint8
    )
    program = check(graph_of([node], tensors), config)
    placement = program.steps[0].placement
    if config is COLUMN:
        assert (placement.reason, placement.field, placement.extra_bytes) == ("", "", 0)
    else:
        assert placement.on_weft and placement.field == "b_zero_point=column"
        assert placement.extra_bytes == program.steps[0].estimate.bytes_out * 3 // 4


@pytest.mark.parametrize("wide", [False, True])
def test_int16_is_two_products(wide):
    rng = np.random.default_rng(4)
    tensors = [tensor((1, 40), np.int16)]
    node = fully_connected(rng, 0, tensors, 9, dtype=np.int16, wide=wide)
    program = check(graph_of([node], tensors), SMALL)
    assert program.steps[0].products[0].m == 2 and program.steps[0].placement.on_weft


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_two_activations(raw, count):
    rng = np.random.default_rng(5)
    tensors = [tensor((1, 2, 5, 6), zero=4), tensor((1, 2, 6, 7), zero=-5)]
    node = pair(rng, 0, 1, tensors, raw=raw, b_zero=-5)
    program = check(graph_of([node], tensors, inputs=(0, 1)), COLUMN, count=count)
    assert program.steps[0].weights == "activation"


@pytest.mark.parametrize("b_zero", [0, -5])
def test_products_of_two_activations_without_a_zero_point(b_zero):
    """Each product of a batch has parameters, also if x has the zero point 0."""
    rng = np.random.default_rng(4)
    tensors = [tensor((1, 3, 4, 9), zero=0), tensor((1, 3, 9, 5), zero=b_zero)]
    graph = graph_of([pair(rng, 0, 1, tensors, b_zero=b_zero)], tensors, inputs=(0, 1))
    assert check(graph, COLUMN, count=2).steps[0].placement.on_weft


def test_the_zero_point_of_an_activation_is_not_one_of_weights():
    rng = np.random.default_rng(5)
    tensors = [tensor((1, 2, 5, 6), zero=4), tensor((1, 2, 6, 7), zero=-5)]
    graph = graph_of([pair(rng, 0, 1, tensors, b_zero=-5)], tensors, inputs=(0, 1))
    [step] = compile_graph(graph, SMALL).steps
    assert step.placement.reason == "operand B has a zero point: the host corrects raw sums"


def test_two_activations_of_int16_run_on_the_host():
    rng = np.random.default_rng(6)
    tensors = [tensor((1, 2, 3), np.int16), tensor((1, 3, 4), np.int16)]
    node = dataclasses.replace(
        pair(rng, 0, 1, [*tensors]), outputs=(2,), requantization=None
    )
    graph = graph_of([node], [*tensors, tensor((1, 2, 4), np.int64)], inputs=(0, 1))
    program = compile_graph(graph, SMALL)
    assert not program.steps[0].placement.on_weft
    x, b = integers(rng, np.int16, 1, 2, 3), integers(rng, np.int16, 1, 3, 4)
    np.testing.assert_array_equal(run(program, x, b), x.astype(int) @ b.astype(int))


def test_sums_only():
    rng = np.random.default_rng(7)
    tensors = [tensor((2, 20), np.uint8, zero=7)]
    check(graph_of([fully_connected(rng, 0, tensors, 5, raw=True)], tensors), SMALL)


@pytest.mark.parametrize("source, requantize, mode, field", [
    ("tflite", "single", "single", ""), ("onnx", "onnx", "onnx", ""),
    ("tflite", "onnx", "tflite", "requantize=tflite"),
    ("onnx", "tflite", "onnx", "requantize=onnx"),
    ("tflite", "none", "tflite", "requantize=tflite"),
])
def test_modes(source, requantize, mode, field):
    config = dataclasses.replace(SMALL, requantize=requantize, activation="none")
    graph = dataclasses.replace(chain(np.random.default_rng(8)), source=source)
    program = compile_graph(graph, config)
    assert program.mode == mode and program.steps[0].placement.field == field
    if mode != "single":  # numpy has no model of it here; TFLite's rounding differs
        check(graph, config, mode=mode)


def table_graph(readers=1):
    rng = np.random.default_rng(9)
    tensors = [tensor((1, 20))]
    nodes = [fully_connected(rng, 0, tensors, 8), table_of(rng, 1, tensors, position=1)]
    outputs = (2,) if readers == 1 else (2, 1)
    return graph_of(nodes, tensors, outputs=outputs)


def test_a_table_is_fused():
    program = check(table_graph(), SMALL)
    (step,) = program.steps
    assert step.operators == ("FULLY_CONNECTED", "LOGISTIC") and step.position == (0, 1)
    assert step.outputs == (2,) and step.placement.on_weft


def test_two_tables_are_loaded_in_each_inference():
    rng = np.random.default_rng(10)
    tensors = [tensor((1, 20))]
    nodes = []
    for place in range(2):
        nodes.append(fully_connected(rng, 2 * place, tensors, 8, position=2 * place))
        nodes.append(table_of(rng, 2 * place + 1, tensors, position=2 * place + 1))
    program = check(graph_of(nodes, tensors), SMALL, count=2)
    assert [step.work.loads_table for step in program.steps] == [True, True]


@pytest.mark.parametrize("config, readers, fuse, reason, field", [
    (SMALL, 2, True, "the product before it has other readers", ""),
    (dataclasses.replace(SMALL, activation="none"), 1, True, "the core has no activation table",
     "activation=table"),
    (SMALL, 1, False, "a function of one value", ""),
])
def test_a_table_is_not_fused(config, readers, fuse, reason, field):
    program = compile_graph(table_graph(readers), config, fuse=fuse)
    placement = program.steps[1].placement
    assert (placement.on_weft, placement.reason, placement.field) == (False, reason, field)


def float_graph():
    rng = np.random.default_rng(11)
    # Small integers, of which bfloat16 and float32 represent all products and sums.
    weights = rng.integers(-3, 4, (1, 6, 5)).astype(np.float32)
    node = Gemm(
        operator="FULLY_CONNECTED", name="y", position=(0,), inputs=(0,), outputs=(1,), x=0,
        weights=weights, bias=np.arange(5, dtype=np.float32) - 2, activation="relu6",
    )
    x = rng.integers(-3, 4, (2, 6)).astype(np.float32)
    expected = np.clip(x @ weights[0] + node.bias, 0, 6)
    return graph_of([node], [tensor((2, 6), np.float32), tensor((2, 5), np.float32)]), x, expected


@pytest.mark.parametrize("config, on_weft, field", [
    (Config(dtype="bf16", a_words=64, b_words=64), True, ""),
    (Config(dtype="bf16", a_words=64, b_words=64, activation="none"), True, "activation=clamp"),
    (Config(dtype="bf16", a_words=64, b_words=64, c_words=0), True, "c_words=1024"),
    (Config(dtype="bf16", a_words=64, b_words=64, activation="none", c_words=0), True,
     "c_words=1024"),
    (SMALL, False, "dtype=bf16"),
])
def test_float32(config, on_weft, field):
    graph, x, expected = float_graph()
    program = compile_graph(graph, config)
    placement = program.steps[0].placement
    assert (placement.on_weft, placement.field) == (on_weft, field)
    np.testing.assert_array_equal(run(program, x), expected)


@pytest.mark.parametrize("config", [Config(dtype="bf16", a_words=64, b_words=64), SMALL])
def test_infinity_and_nan_of_float32_pass_without_a_warning(config):
    graph, x, expected = float_graph()
    x[0] = np.inf, -np.inf, np.nan, 1, 1, 1
    expected[0] = np.nan
    np.testing.assert_array_equal(run(compile_graph(graph, config), x), expected)


def test_int8_on_a_bf16_core_runs_on_the_host():
    program = check(chain(np.random.default_rng(12)), Config(dtype="bf16"))
    assert program.steps[0].placement.field == "dtype=int8"


@pytest.mark.parametrize("b_words, kinds", [
    (4096, ["resident"] * 4), (256, ["resident", "resident", "early", "streamed"]),
    (32, ["streamed"] * 4),
])
def test_weights_stay_load_early_or_with_their_step(b_words, kinds):
    graph = chain(np.random.default_rng(13), (30, 16, 30, 16, 30))
    config = dataclasses.replace(SMALL, b_words=b_words)
    program = check(graph, config, count=2)
    assert [step.weights for step in program.steps] == kinds
    pages = [step.resident_bytes // (16 * 8) for step in program.steps]  # of 16 words of 8 bytes
    assert pages == [4 * (kind == "resident") * (1 if n % 2 == 0 else 2)
                     for n, kind in enumerate(kinds)]


def test_predicted_is_measured():
    graph = chain(np.random.default_rng(14), (30, 16, 30, 16, 30))
    program = compile_graph(graph, SMALL)
    _, records = run(program, integers(np.random.default_rng(1), np.int8, 1, 30), stats=True)
    for record in records:
        estimate, stats = record.step.estimate, record.stats
        assert stats.cycles == estimate.cycles and stats.jobs == estimate.jobs
        assert (stats.bytes_in, stats.bytes_out) == (estimate.bytes_in, estimate.bytes_out)


def test_names_the_operator_with_a_wrong_scale():
    graph = chain(np.random.default_rng(15))
    node = graph.nodes[0]
    wrong = dataclasses.replace(node.requantization, y_scale=0.0)
    graph = dataclasses.replace(
        graph, nodes=(dataclasses.replace(node, requantization=wrong), *graph.nodes[1:])
    )
    rule = r"net: operator 0 \(FULLY_CONNECTED fc0\): y_scale must be finite and above 0"
    with pytest.raises(ModelError, match=rule):
        compile_graph(graph, SMALL)


def test_the_host_runs_what_the_graph_says():
    rng = np.random.default_rng(16)
    tensors = [tensor((1, 20))]
    nodes = [fully_connected(rng, 0, tensors, 8)]
    tensors.append(tensor((2, 4)))
    nodes.append(Host(
        operator="RESHAPE", name="r", position=(1,), inputs=(1,), outputs=(2,), kernel="reshape",
        attributes={"shape": (2, 4)}, reason="it moves values",
    ))
    program = check(graph_of(nodes, tensors), SMALL, count=2)
    assert program.steps[1].placement.reason == "it moves values"


@pytest.mark.parametrize("words, weights", [(256, "resident"), (32, "streamed")])
def test_a_recurrent_layer(words, weights):
    """A product a step, its cost as measured, and a state that lasts."""
    rng, tensors = np.random.default_rng(30), [tensor((2, 5, 6), zero=3, name="x")]
    graph = graph_of(lstm(rng, 0, tensors, 7), tensors)
    program = compile_graph(graph, dataclasses.replace(SMALL, b_words=words))
    into, step = program.steps
    assert (into.macs, step.macs) == (10 * 6 * 28, 10 * 7 * 28)
    assert step.products == (MatrixProduct(2, 7, 28, 5),) and step.weights == weights
    assert step.placement.on_weft and step.placement.reason == "gates"
    states, outputs = {}, []
    with program.open(GoldenTransport(program.target.array)) as session:
        for _ in range(3):
            x = integers(rng, np.int8, 2, 5, 6)
            y, [_, record] = session(x, stats=True)
            np.testing.assert_array_equal(y, run_graph(graph, [x], states)[graph.outputs[0]])
            outputs.append(y)
    assert len(np.unique(outputs)) > 50  # the gates are not saturated
    stats, estimate = record.stats, step.estimate
    found = stats.cycles, stats.jobs, stats.bytes_in, stats.bytes_out, stats.macs
    assert found == (
        estimate.cycles, estimate.jobs, estimate.bytes_in, estimate.bytes_out, step.macs
    )
    assert estimate.jobs == (5 if weights == "resident" else 35)  # a panel of B at a time


def test_a_recurrent_layer_on_the_host():
    rng, tensors = np.random.default_rng(31), [tensor((1, 4, 3), name="x")]
    graph = graph_of(lstm(rng, 0, tensors, 4), tensors)
    config = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, c_words=64)
    program = compile_graph(graph, config)
    step = program.steps[1]
    assert not step.placement.on_weft and step.products == () and step.estimate is None
    assert step.placement.field == "dtype=int8"
    x = integers(rng, np.int8, 1, 4, 3)
    np.testing.assert_array_equal(run(program, x), run_graph(graph, [x])[graph.outputs[0]])
