"""Tables in mode ``single`` against LiteRT, if its wheel is installed: ties round as it does."""

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build, micro
from tflite_operators import q

from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.compiler import compile_graph
from weft.models.exactness import in_mode
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

EVERY = np.arange(256, dtype=np.uint8).view(np.int8)[None]
FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def table_file(rng, name, number):
    """A file of one operator; some scales are powers of two, whose results are ties."""
    x, y, options = q(rng, (1, 256)), q(rng, (1, 256)), None
    if number % 2:
        x.scale = float(np.exp2(rng.integers(-10, 1)))
    if number % 3 == 0:
        y.scale = float(np.exp2(rng.integers(-10, 1)))
    if name in FIXED:
        y = T((1, 256), scale=FIXED[name][0], zero=FIXED[name][1])
    if name == "RSQRT":
        x.zero = -128
    if name == "LEAKY_RELU":
        options = "LeakyReluOptions", {"alpha": float(rng.uniform(-0.5, 2))}
    if name == "GELU":
        options = "GeluOptions", {"approximate": number % 5 == 0}
    operator = (name, ["x"], ["y"], options, 1 if name == "ELU" else 2)
    return build({"x": x, "y": y}, [operator], ["x"], ["y"])


@pytest.mark.parametrize("name", [
    "LOGISTIC", "TANH", "LEAKY_RELU", "QUANTIZE", "ELU", "GELU", "RSQRT",
])
def test_equals_litert(rng, name):
    pytest.importorskip("ai_edge_litert")
    for number in range(60):
        data = table_file(rng, name, number)
        graph = load(data, "net")
        single = in_mode(graph, "single")
        [[expected]] = litert(data, [[EVERY]])
        assert np.array_equal(run_graph(single, [EVERY])[graph.outputs[0]], expected)
        if name == "GELU":
            continue  # TFLite Micro does not have it
        [expected] = micro(data, [EVERY])
        assert np.array_equal(
            run_graph(in_mode(graph, "tflite"), [EVERY])[graph.outputs[0]], expected
        )


@pytest.mark.parametrize("alpha", [-0.5, -1.5, -2.0, -6.0, 0.0])
@pytest.mark.parametrize("scale, y_scale", [(2**-5, 2**-5), (2**-12, 2**-3)])
def test_leaky_relu_next_to_ties(alpha, scale, y_scale):
    """The second pair of scales is not XNNPACK's."""
    pytest.importorskip("ai_edge_litert")
    for zero in (0, 100, -128):
        x, y = T((1, 256), scale=scale, zero=zero), T((1, 256), scale=y_scale)
        operator = ("LEAKY_RELU", ["x"], ["y"], ("LeakyReluOptions", {"alpha": alpha}), 2)
        data = build({"x": x, "y": y}, [operator], ["x"], ["y"])
        graph = in_mode(load(data, "net"), "single")
        [[expected]] = litert(data, [[EVERY]])
        assert np.array_equal(run_graph(graph, [EVERY])[graph.outputs[0]], expected)


@pytest.mark.parametrize("mode", ["tflite", "single"])
def test_a_program_has_the_table_of_its_mode(mode):
    """The logistic function of -1/128 is near the tie of 127.5 and 128."""
    data = build(
        {"x": T((1, 256), scale=2**-7), "y": T((1, 256), scale=2**-8, zero=-128)},
        [("LOGISTIC", ["x"], ["y"], None, 2)], ["x"], ["y"],
    )
    graph, config = load(data, "net"), Config(rows=2, cols=2, requantize=mode)
    program = compile_graph(graph, config)
    with program.open(GoldenTransport(config)) as session:
        y = session(EVERY)
    assert y[0, 255] == (0 if mode == "single" else -1)
    assert set(program.steps[0].work.attributes) == {"table"}
