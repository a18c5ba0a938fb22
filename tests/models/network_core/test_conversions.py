"""Tables of 256 results: layers that scale and clamp, or lookups behind a layer or a copy."""

import contextlib

import numpy as np
import pytest
from network_cores import MICRO, PROGRAM, SIMULATED, network_core_config
from tflite_files import T, build, micro

import weft
from weft.config import Config
from weft.models.network_core.pools import conversion_scale
from weft.models.target import target_of
from weft.sim.network_core import SimulatedRunner

I8, U8 = np.int8, np.uint8
CONFIGS = [
    network_core_config(3, 4, 4, 2), network_core_config(2, 8, 8, 2, requantize="single"), MICRO,
    PROGRAM,
]


def expected(data, config, x):
    """The outputs of the same file in the mode of ``config``: with the tables of the host."""
    mode = Config(requantize=config.array.requantize)
    with weft.load(data, "net").compile(mode).open("golden") as session:
        return session(x)


def network(operator, kinds, scales, zeros, table=None, results=("y",)):
    """A convolution of int8, then an operator of a table with the options ``table``."""
    rng = np.random.default_rng(4)
    of = dict(zip(("h", "y"), zip(kinds, scales, zeros, strict=True), strict=True))
    tensors = {
        "x": T((1, 6, 6, 3), scale=0.1, zero=4),
        "w": T(data=rng.integers(-128, 128, (8, 3, 3, 3), I8), scale=0.02),
        **{name: T((1, 4, 4, 8), kind, scale=scale, zero=zero)
           for name, (kind, scale, zero) in of.items()},
    }
    options = {"strideH": 1, "strideW": 1, "padding": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    operators = [
        ("CONV_2D", ["x", "w", None], ["h"], ("Conv2DOptions", options)),
        (operator, ["h"], ["y"], table),
    ]
    return build(tensors, operators, ["x"], [*results]), rng.integers(-128, 128, (1, 6, 6, 3), I8)


@pytest.mark.parametrize("operator, kinds, scales, zeros", [
    ("QUANTIZE", ("int8", "int8"), (0.05, 0.13), (-3, 20)),
    ("QUANTIZE", ("int8", "int8"), (0.13, 0.05), (-3, 20)),
    ("QUANTIZE", ("int8", "uint8"), (0.05, 0.05), (-3, 125)),
    ("RELU", ("int8", "int8"), (0.05, 0.08), (-3, -128)),
    ("RELU6", ("int8", "int8"), (0.05, 0.05), (-3, -3)),
])
def test_a_scaling_table_is_a_layer(operator, kinds, scales, zeros):
    data, x = network(operator, kinds, scales, zeros)
    program = weft.load(data, "net").compile(target_of(network_core_config(3, 4, 4, 2)))
    assert [layer.operators for layer in program.layers] == [("CONV_2D",), (operator,)]
    with program.open("golden") as session:
        y = session(x)
    np.testing.assert_array_equal(y, micro(data, [x])[0])


LEAKY = "LeakyReluOptions", {"alpha": 0.3}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("operator, scales, zeros, options", [
    ("LOGISTIC", (0.05, 1 / 256), (-3, -128), None),
    ("TANH", (0.03, 1 / 128), (11, 0), None),
    ("LEAKY_RELU", (0.07, 0.02), (-30, 9), LEAKY),
    ("HARD_SWISH", (0.06, 0.04), (-9, -118), None),
])
def test_a_table_behind_a_layer(config, operator, scales, zeros, options):
    data, x = network(operator, ("int8", "int8"), scales, zeros, options)
    program = weft.load(data, "net").compile(target_of(config))
    assert [layer.operators for layer in program.layers] == [("CONV_2D", operator)]
    assert not program.host
    with program.open("golden") as session:
        y = session(x)
    np.testing.assert_array_equal(y, expected(data, config, x))
    if program.mode == "tflite":
        np.testing.assert_array_equal(y, micro(data, [x])[0])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("operator, scales, zeros, options", [
    ("LOGISTIC", (0.1, 1 / 256), (-128, -128), None),
    ("LEAKY_RELU", (0.1, 0.09), (5, 127), LEAKY),
])
def test_a_table_alone(config, operator, scales, zeros, options):
    """All 256 values, in a network without a product, and behind a layer that others read, too."""
    tensors = {"x": T((1, 8, 16, 2), scale=scales[0], zero=zeros[0]),
               "y": T((1, 8, 16, 2), scale=scales[1], zero=zeros[1])}
    data = build(tensors, [(operator, ["x"], ["y"], options)], ["x"], ["y"])
    x = np.arange(256, dtype=np.uint8).view(np.int8).reshape(1, 8, 16, 2)
    program = weft.load(data, "net").compile(target_of(config))
    assert [layer.operators for layer in program.layers] == [(operator,)]
    with program.open("golden") as session:
        y = session(x)
    np.testing.assert_array_equal(y, expected(data, config, x))
    if program.mode == "tflite":
        np.testing.assert_array_equal(y, micro(data, [x])[0])
    data, x = network(operator, ("int8", "int8"), scales, zeros, options, ["h", "y"])
    program = weft.load(data, "net").compile(target_of(config))
    assert [layer.operators for layer in program.layers] == [("CONV_2D",), (operator,)]
    with program.open("golden") as session:
        for found, wanted in zip(session(x), expected(data, config, x), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_the_simulated_core_has_bytes_and_cycles_of_a_table():
    data, x = network("LOGISTIC", ("int8", "int8"), (0.05, 1 / 256), (-3, -128))
    config = SIMULATED
    program = weft.load(data, "net").compile(target_of(config))
    with contextlib.closing(SimulatedRunner(config)) as runner, program.open(runner) as session:
        y, records = session(x, stats=True)
    np.testing.assert_array_equal(y, micro(data, [x])[0])
    assert [record.cycles for record in records] == [layer.cycles for layer in program.layers]


def test_a_small_memory_leaves_the_table_to_the_host():
    """A table takes 512 vectors; without it, the program fits."""
    data, x = network("LOGISTIC", ("int8", "int8"), (0.05, 1 / 256), (-3, -128))
    config = network_core_config(3, 4, 4, 2, words=128, b_words=128, lines=64)
    program = weft.load(data, "net").compile(target_of(config))
    [step] = program.host
    assert [layer.operators for layer in program.layers] == [("CONV_2D",)]
    assert step.placement.reason == "the memory has no space for its table"
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), micro(data, [x])[0])


def test_other_functions_do_not_scale():
    x = np.arange(-128, 128)
    table = np.where(x < 0, x // 2, x).astype(I8)  # LEAKY_RELU
    assert conversion_scale(table, 1.0, (0, 0), "tflite") is None
    found, low, high = conversion_scale(x.astype(I8), 1.0, (0, 0), "tflite")
    assert (low, high) == (-128, 127) and found.weight >= 1
