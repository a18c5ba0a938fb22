"""Networks of int16 on a network core with `int16`: one list, byte for byte TFLite Micro."""

from dataclasses import replace

import numpy as np
import pytest
from network_cores import BATCH1, EARLY_ROW, LARGE, ROW, SMALL, network_core_config
from products import integers
from tflite_files import runner
from tiers import quick

import weft
from tools.network_writer import NONE, RELU, RELU6, SAME, VALID, Writer
from weft.models.network_core.runners import GoldenRunner
from weft.models.report.placement import reasons_of
from weft.sim.network_core import SimulatedRunner

# A vector has the bytes of 8 values.
DEEP = network_core_config(2, 4, 16, 4, int16=True, b_words=4096)
CONFIGS = [ROW, replace(LARGE, int16=True), replace(SMALL, int16=True), DEEP,
           replace(BATCH1, int16=True)]
POOL = dict(padding=SAME, strideH=2, strideW=2, filterHeight=3, filterWidth=2)


def writer(*shape, dtype="int16"):
    return Writer(1, shape, dtype)


def dense():
    """K of 1, then of 40 with a bias; values that saturate."""
    w = writer(1, 1)
    return w, w.dense(w.dense("x", 40, RELU), 5)


def convolutions():
    """Borders, strides, parts of vectors and tiles; limits of an activation."""
    w = writer(1, 9, 7, 3)
    x = w.depthwise(w.convolution("x", 9, 3, 2, SAME, RELU6), 3, 1, NONE)
    return w, w.convolution(x, 5, (2, 3), 1, VALID, NONE, dilation=(2, 1))


def one_by_one():
    w = writer(1, 4, 3, 1)
    return w, w.depthwise(w.convolution("x", 2, 1, 1), (3, 1), 2)


def moves():
    """PAD before a convolution and alone, CONCATENATION, a slice, RESHAPE."""
    w = writer(1, 6, 5, 4)
    a = w.convolution(w.pad("x", (0, 0), (1, 2), (0, 1), (0, 0)), 6, 3, 1, VALID)
    b = w.pad(w.convolution("x", 3, (1, 2), 1, VALID), (0, 0), (0, 1), (0, 0), (1, 0))
    w.tensors[b] = replace(w.tensors[b], scale=w.tensors[a].scale)
    height, width, _ = w.shape(a)[1:]
    y = w._like(a, (1, height, width, 10))
    x = w.add("CONCATENATION", [a, b], y, ("ConcatenationOptions", {"axis": 3}))
    shape = w.constant(np.int32([1, -1]))
    y = w._like(x, (1, int(np.prod(w.shape(x)))))
    return w, w.dense(w.add("RESHAPE", [x, shape], y, ("ReshapeOptions", {"newShape": [1, -1]})), 3)


def pair_of(operator, options, scale=0.07, **fields):
    w = writer(1, 5, 3, 6)
    other = w.convolution("x", 6, 3, 1, SAME, NONE)
    y = w.output((1, 5, 3, 6), scale)
    return w, w.add(operator, [other, "x"], y, (options, fields))


def pool(operator, activation=NONE):
    w = writer(1, 7, 5, 3)
    x = w.convolution("x", 6, 3, 1, SAME, NONE)
    y = w._like(x, (1, 4, 3, 6))
    return w, w.add(
        operator, [x], y, ("Pool2DOptions", POOL | {"fusedActivationFunction": activation})
    )


def mean():
    w = writer(1, 5, 3, 4)
    x = w.convolution("x", 5, 3)
    y = w._like(x, (1, 5))
    axes = w.constant(np.int32([1, 2]))
    return w, w.dense(w.add("MEAN", [x, axes], y, ("ReducerOptions", {"keepDims": False})), 4)


def quantized(kind, ratio, zero):
    w = writer(1, 4, 3, 5)
    x = w.convolution("x", 6, 3, 1, SAME, NONE)
    y = w.output(w.shape(x), w.tensors[x].scale * ratio, zero, kind)
    return w, w.add("QUANTIZE", [x], y, ("QuantizeOptions", {}))


def of_bytes():
    """The input is int8, and a layer of int8 comes first."""
    w = writer(1, 4, 3, 5, dtype="int8")
    x = w.convolution("x", 6, 3, 1, SAME, NONE)
    y = w.output(w.shape(x), w.tensors[x].scale / 240, 0, "int16")
    x = w.add("QUANTIZE", [x], y, ("QuantizeOptions", {}))
    w.dtype = "int16"
    return w, w.convolution(x, 3, 3)


NETWORKS = {
    "convolutions": convolutions, "dense": dense, "one by one": one_by_one, "moves": moves,
    "add": lambda: pair_of("ADD", "AddOptions"),
    "sub": lambda: pair_of("SUB", "SubOptions", 0.3, fusedActivationFunction=RELU),
    "average": lambda: pool("AVERAGE_POOL_2D"),
    "maximum": lambda: pool("MAX_POOL_2D", RELU), "mean": mean,
    "to int8": lambda: quantized("int8", 200, 3), "to int16": lambda: quantized("int16", 1.7, 0),
    "from int8": of_bytes,
}


def stream(name):
    """A file, inputs with both ends of the range, and the outputs of TFLite Micro."""
    w, y = NETWORKS[name]()
    data, given = w.file(y), w.tensors["x"]
    x = integers(np.random.default_rng(1), np.dtype(given.dtype), 9, *given.shape[1:])
    limits = np.iinfo(x.dtype)
    x[0], x[1], x[2::3] = limits.min, limits.max, x[2::3] // 100
    run = runner(data)
    expected = np.concatenate([run(row[None])[0] for row in x])
    assert len(np.unique(expected)) > 8
    return data, x, expected


def compiled(data, config):
    """A program of one list."""
    program = weft.load(data, "net").compile(config)
    assert len(program.segments) == 1 and not program.host, reasons_of(program)
    return program


@pytest.mark.parametrize("config", quick(2, CONFIGS))
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_int16_is_one_list(name, config):
    data, x, expected = stream(name)
    program = compiled(data, replace(config, words=config.most_words))
    with program.open(GoldenRunner(program.config, eager=False)) as session:
        np.testing.assert_array_equal(session(x), expected)


def test_a_program_file(tmp_path):
    data, x, expected = stream("moves")
    compiled(data, ROW).save(tmp_path / "net.weft")
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_without_the_option():
    """The core computes products one by one, and the host all else, with the same bytes."""
    data, x, expected = stream("from int8")
    program = weft.load(data, "net").compile(LARGE)
    assert [step.operators for step in program.host] == [("QUANTIZE",), ("CONV_2D",)]
    reason = "CONV_2D: the core has no values of 16 bits; a network core with int16 = true in"
    assert reason in " ".join(reasons_of(program))
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_what_stays_on_the_host():
    """Each one has its reason; the results are those of TFLite Micro."""
    w = writer(1, 700)
    x = w.dense("x", 6)
    [weights] = [n for n, t in w.tensors.items() if t.data is not None and t.data.ndim == 2]
    w.tensors[weights] = replace(w.tensors[weights], data=np.full((6, 700), 127, np.int8))
    data = w.file(w.add("LOGISTIC", [w.dense(x, 3)], w.output((1, 3), 2.0**-15)))
    program = weft.load(data, "net").compile(ROW)
    reason = "FULLY_CONNECTED: its sums may have 33 bits, with scales up to 2^0, and the lanes"
    assert reason in " ".join(reasons_of(program))
    assert [step.operators[-1] for step in program.host if step.operators != ("RESHAPE",)] == [
        "FULLY_CONNECTED", "LOGISTIC",
    ]
    x = integers(np.random.default_rng(1), np.int16, 4, 700)
    run = runner(data)
    with program.open("golden") as session:
        np.testing.assert_array_equal(
            session(x), np.concatenate([run(row[None])[0] for row in x])
        )


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("config", [ROW, EARLY_ROW])
def test_the_simulated_core_takes_the_predicted_cycles(name, config):
    data, x, expected = stream(name)
    program = compiled(data, config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x[:4], expected, strict=False):
            np.testing.assert_array_equal(session(row[None])[0], wanted)
            assert session.cycles == program.cycles
