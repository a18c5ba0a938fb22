"""SVDF and LSTM of float32 with weights of 8 bits (dynamic range quantization), as LiteRT's."""

import numpy as np
import pytest
from graph_runner import run_graph
from lstm_files import lstm
from network_cores import network_core_config
from tflite_files import T, build

from weft.config import Config
from weft.host import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.exactness import exactness_of
from weft.models.ir import Gemm, Recurrence
from weft.models.loading import load as load_file
from weft.models.network_core.compiler import compile_network_core
from weft.models.report.placement import placement_line
from weft.models.target import target_of
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

F32 = np.float32
CONFIG = Config(rows=2, cols=4, depth=4)
NONE, RELU, RELU6, TANH, SIGN_BIT = 0, 1, 3, 4, 5


def series(rng, shape, count):
    """Inputs one after the other: of several ranges, and one of zeros."""
    for number in range(count):
        x = rng.normal(size=shape) * np.exp(rng.normal(size=(*shape[:-1], 1)))
        yield (0 * x if number == 2 else x + rng.normal(size=(*shape[:-1], 1))).astype(F32)


def weights(rng, kind, *shape):
    """Bytes of int8, which old converters call uint8."""
    return rng.integers(-127, 128, shape).astype(np.int8).view(kind)


def svdf(rng, kind="int8", activation=RELU, asymmetric=False, bias=True, batch=2):
    """A file of one SVDF: 17 inputs, 8 filters of rank 2 and memory 5."""
    tensors = {
        "x": T((batch, 17), "float32"), "f": T(data=weights(rng, kind, 8, 17), scale=0.01),
        "t": T(data=weights(rng, kind, 8, 5), scale=0.02),
        "b": T(data=rng.normal(size=4).astype(F32)),
        "s": T((batch, 40), "float32", variable=True), "y": T((batch, 4), "float32"),
    }
    options = {
        "rank": 2, "fusedActivationFunction": activation, "asymmetricQuantizeInputs": asymmetric,
    }
    inputs = ["x", "f", "t", "b" if bias else None, "s"]
    return build(tensors, [("SVDF", inputs, ["y"], ("SVDFOptions", options), 3)], ["x"], ["y"])


def over_runs(data, xs):
    """Results of runs that follow each other, in LiteRT and here; they are not those of one."""
    pytest.importorskip("ai_edge_litert")
    expected = [y for [y] in litert(data, [[x] for x in xs])]
    graph, state = load(data, "net"), {}
    found = [run_graph(graph, [x], state)[graph.outputs[0]] for x in xs]
    assert not np.array_equal(run_graph(graph, [xs[-1]], {})[graph.outputs[0]], found[-1])
    return found, expected


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("kind, activation, bias", [
    ("int8", RELU, True), ("int8", NONE, False), ("uint8", RELU6, True), ("uint8", NONE, True),
])
def test_svdf_is_that_of_litert(asymmetric, kind, activation, bias):
    rng = np.random.default_rng(61)
    data = svdf(rng, kind, activation, asymmetric, bias)
    for y, expected in zip(*over_runs(data, list(series(rng, (2, 17), 7))), strict=True):
        assert np.allclose(y, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


def test_the_features_of_svdf_are_a_product_on_the_core(tmp_path):
    rng = np.random.default_rng(62)
    graph = load(svdf(rng), "net")
    assert [getattr(node, "kernel", "gemm") for node in graph.nodes] == [
        "litert.quantize_rows", "gemm", "litert.float_sums", "litert.svdf"
    ]
    program = compile_graph(graph, CONFIG)
    assert placement_line(program).startswith("net: 1 of 1 operators on Weft (77.27 % of 352 MAC)")
    program.save(tmp_path / "net.weft")
    state = {}
    with load_file(tmp_path / "net.weft").open(GoldenTransport(CONFIG)) as session:
        for x in series(rng, (2, 17), 4):
            assert np.array_equal(session(x), run_graph(graph, [x], state)[graph.outputs[0]])


def test_svdf_with_a_function_that_is_no_clamp_is_refused():
    with pytest.raises(ModelError, match="fused activation 4 is not a clamp"):
        load(svdf(np.random.default_rng(63), activation=TANH), "net")


LSTMS = [
    dict(batch=1, time=5), dict(batch=3, time=4, asymmetric=True),
    dict(batch=3, time=4, major=True), dict(batch=1, time=20, clip=0.3, units=9, asymmetric=True),
    dict(batch=2, time=6, weights="uint8"),
    dict(batch=2, time=6, weights="uint8", asymmetric=True, units=33, size=17),
    dict(batch=2, time=3, activation=RELU, clip=0.9),
    dict(batch=2, time=3, activation=RELU6, asymmetric=True),
]


def shape_of(options):
    front = options["batch"], options["time"]
    front = front[::-1] if options.get("major") else front
    return (*front, options.get("size", 6))


@pytest.mark.parametrize("options", LSTMS)
def test_lstm_is_that_of_litert(options):
    rng = np.random.default_rng(64)
    data = lstm(rng, kind="float32", **{"weights": "int8"} | options)
    for y, expected in zip(*over_runs(data, list(series(rng, shape_of(options), 5))), strict=True):
        assert np.allclose(y, expected, rtol=0, atol=2e-6 * max(1, abs(expected).max()))


@pytest.mark.parametrize("activation", [NONE, SIGN_BIT])
def test_lstm_with_another_function_is_refused(activation):
    """TFLite Micro would take the weights for float32."""
    data = lstm(
        np.random.default_rng(69), batch=1, time=2, kind="float32", weights="int8",
        activation=activation,
    )
    message = f"must be TANH or a clamp in an LSTM with weights of 8 bits, not {activation}$"
    with pytest.raises(ModelError, match=message):
        load(data, "net")


def test_the_products_of_lstm_are_on_the_core(tmp_path):
    rng = np.random.default_rng(65)
    graph = load(lstm(rng, batch=2, time=5, kind="float32", weights="int8"), "net")
    kinds = [type(node) for node in graph.nodes]
    assert kinds.count(Gemm) == 1 and kinds[-1] is Recurrence
    program = compile_graph(graph, CONFIG)
    line = placement_line(program)
    assert line.startswith("net: 1 of 1 operators on Weft (100 % of 1,600 MAC)")
    program.save(tmp_path / "net.weft")
    state = {}
    with load_file(tmp_path / "net.weft").open(GoldenTransport(CONFIG)) as session:
        for x in series(rng, (2, 5, 6), 4):
            assert np.array_equal(session(x), run_graph(graph, [x], state)[graph.outputs[0]])


def test_a_network_core_computes_their_products_one_by_one():
    rng, plain = np.random.default_rng(68), {"strideH": 1, "strideW": 1, "padding": 1}
    tensors = {
        "i": T((1, 3, 3, 2), scale=0.1), "k": T(data=weights(rng, "int8", 2, 2, 2, 2), scale=0.1),
        "q": T((1, 2, 2, 2), scale=0.1), "d": T((1, 2, 2, 2), "float32"),
        "n": T(data=np.int32([1, 8])), "x": T((1, 8), "float32"),
        "f": T(data=weights(rng, "int8", 8, 8), scale=0.01),
        "t": T(data=weights(rng, "int8", 8, 3), scale=0.02),
        "s": T((1, 24), "float32", variable=True), "y": T((1, 4), "float32"),
    }
    options = {"rank": 2, "asymmetricQuantizeInputs": True}
    graph = load(build(tensors, [
        ("CONV_2D", ["i", "k"], ["q"], ("Conv2DOptions", plain), 5),
        ("DEQUANTIZE", ["q"], ["d"], None, 2), ("RESHAPE", ["d", "n"], ["x"], None),
        ("SVDF", ["x", "f", "t", None, "s"], ["y"], ("SVDFOptions", options), 3),
    ], ["i"], ["y"]), "net")
    program = compile_network_core(graph, target_of(network_core_config(2, 4, 4)))
    [step] = [step for step in program.host if step.products]
    assert step.placement.on_weft and [(p.m, p.k, p.n) for p in step.products] == [(1, 8, 8)]
    state = {}
    with program.open("golden") as session:
        for _ in range(4):
            x = rng.integers(-128, 128, (1, 3, 3, 2)).astype(np.int8)
            assert np.array_equal(session(x), run_graph(graph, [x], state)[graph.outputs[0]])


def test_the_notes_count_the_products():
    """Weights of uint8 are bytes of int8: no value is raised by 128."""
    notes = {
        "1 product with": svdf(np.random.default_rng(70), "uint8"),
        "2 products with": lstm(
            np.random.default_rng(70), batch=1, time=2, kind="float32", weights="uint8"
        ),
    }
    for count, data in notes.items():
        [note] = load(data, "net").notes
        assert note == (
            f"{count} float32 activations and int8 weights (dynamic range quantization): rows of"
            " the activations are quantized at run time, as LiteRT does"
        )


def test_the_claim_names_them():
    """A value next to a tie may become the other step of its row."""
    found = exactness_of(
        load(lstm(np.random.default_rng(66), batch=1, time=3, kind="float32", weights="int8"),
             "net"), "single", CONFIG,
    )
    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    assert found.claim == f"equal to LiteRT in mode single, but float32 results of {name} are close"
    assert (found.absolute, found.relative) == ((0.0,), (1 / 128,))
    found = exactness_of(load(svdf(np.random.default_rng(67)), "net"), "tflite", CONFIG)
    assert "SVDF: TFLite Micro has no such products, and Weft computes them as LiteRT" in (
        found.claim
    )
    assert found.relative == (1e-5,)
