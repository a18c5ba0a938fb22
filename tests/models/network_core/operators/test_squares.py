"""SQUARED_DIFFERENCE of two maps on a network core, and the LayerNorm that has it, in one list."""

from dataclasses import replace

import numpy as np
import pytest
from lowered_operators import check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL
from operand_networks import Operands
from products import integers
from tflite_files import T, build, micro
from tiers import quick

import weft
from weft.models.network_core.division import divide
from weft.sim.network_core import SimulatedRunner

KERNEL = "tflite.squared_difference"
MULTIPLIES = replace(LARGE, multiply_maps=True, words=16384)
SINGLE = replace(LARGE, array=replace(LARGE.array, requantize="single"))


@pytest.mark.parametrize("config, dtype", [
    (LARGE, np.int8), (SMALL, np.uint8), (ODD, np.int8), (SINGLE, np.uint8),
])
def test_of_two_maps(config, dtype):
    """Both orders, of the host and of layers; the second one may be smaller."""
    network = Operands(1, (1, 5, 6, 7), dtype)
    x, outputs = network.convolution(0, 7), []
    for shape in ((5, 6, 7), (5, 6, 1), (1, 6, 7)):
        other = network.input((1, *shape))
        outputs.append(network.apply(KERNEL, other, x))
        outputs.append(network.apply(KERNEL, 0, network.convolution(other, shape[2])))
    program = check_whole(network, *outputs, config=config)
    assert all(step.jobs <= 17 for step in program.layers)


@pytest.mark.parametrize("ratio, zeros", quick(3, [
    (1.0, (-128, -128)), (1.0, (5, -3)), (0.999, (127, -128)), (7.0, (-20, 40)), (300.0, (0, 0)),
]))
def test_equals_tflite_micro(ratio, zeros):
    """The largest result is 255 steps, more, or fewer."""
    rng = np.random.default_rng(int(ratio * 10))
    a, b = integers(rng, np.int8, 2, 1, 16, 16, 64)
    for steps in (20, 255, 4000):
        scale = (255 * 0.05 * max(1, ratio)) ** 2 / steps
        tensors = {
            "a": T(a.shape, scale=0.05, zero=zeros[0]), "y": T(a.shape, scale=scale, zero=-128),
            "b": T(a.shape, scale=0.05 * ratio, zero=zeros[1]),
        }
        data = build(
            tensors, [("SQUARED_DIFFERENCE", ["a", "b"], ["y"], None)], ["a", "b"], ["y"]
        )
        [expected] = micro(data, [a, b])
        program = weft.load(data, "net").compile(MULTIPLIES)
        assert not program.host and len(program.segments) == 1
        with program.open("golden") as session:
            np.testing.assert_array_equal(session([a, b]), expected)


def test_the_host_computes_maps_of_many_rows():
    network = Operands(3, (1, 256, 2, 3))
    other = network.input((1, 256, 2, 3))
    graph = divide(network.graph(network.apply(KERNEL, 0, other)), "tflite", 8, 8)
    assert [step.placement.reason for step in graph.host] == [
        "its maps must have at most 255 rows, not 256"
    ]


def layer_norm(rng, rows, channels):
    """A layer, and its LayerNorm as converters write it."""
    whole, row = (1, rows, channels), (1, rows, 1)
    tensors = {
        "x": T(whole, scale=0.05, zero=4), "h": T(whole, scale=0.06, zero=-7),
        "w": T(data=rng.integers(-127, 128, (channels, channels)).astype(np.int8), scale=0.004),
        "bias": T(data=rng.integers(-900, 900, channels).astype(np.int32), scale=0.0002),
        "axis": T(data=np.int32([2])), "mean": T(row, scale=0.02, zero=3),
        "square": T(whole, scale=0.1, zero=-128), "variance": T(row, scale=0.05, zero=-128),
        "small": T(data=np.int8([127]), scale=0.001 / 255, zero=-128),
        "sum": T(row, scale=0.05, zero=-128), "root": T(row, scale=0.03, zero=-128),
        "gamma": T(data=integers(rng, np.int8, channels), scale=0.01, zero=-60),
        "factor": T(whole, scale=0.02, zero=-40), "scaled": T(whole, scale=0.03, zero=1),
        "shift": T(whole, scale=0.01, zero=2), "beta": T(data=integers(rng, np.int8, channels),
                                                          scale=0.01, zero=5),
        "rest": T(whole, scale=0.02, zero=-2), "y": T(whole, scale=0.03, zero=6),
    }
    mean, add, product = ("ReducerOptions", {"keepDims": True}), ("AddOptions", {}), (
        "MulOptions", {}
    )
    operators = [
        ("FULLY_CONNECTED", ["x", "w", "bias"], ["h"], (
            "FullyConnectedOptions", {"keepNumDims": True},
        )),
        ("MEAN", ["h", "axis"], ["mean"], mean),
        ("SQUARED_DIFFERENCE", ["h", "mean"], ["square"], None),
        ("MEAN", ["square", "axis"], ["variance"], mean),
        ("ADD", ["variance", "small"], ["sum"], add), ("RSQRT", ["sum"], ["root"], None),
        ("MUL", ["root", "gamma"], ["factor"], product),
        ("MUL", ["h", "factor"], ["scaled"], product),
        ("MUL", ["mean", "factor"], ["shift"], product),
        ("SUB", ["beta", "shift"], ["rest"], ("SubOptions", {})),
        ("ADD", ["scaled", "rest"], ["y"], add),
    ]
    return build(tensors, operators, ["x"], ["y"])


@pytest.mark.parametrize("config, runner", [
    (MULTIPLIES, "golden"),
    pytest.param(replace(SIMULATED, words=16384, multiply_maps=True), SimulatedRunner,
                 marks=pytest.mark.long),
])
def test_a_layer_norm_is_one_list(config, runner):
    rng = np.random.default_rng(1)
    data, x = layer_norm(rng, 6, 16), integers(rng, np.int8, 3, 6, 16)
    program = weft.load(data, "net").compile(config)
    assert not program.host and len(program.segments) == 1
    with program.open(runner if runner == "golden" else runner(config)) as session:
        for one in x:
            [expected] = micro(data, [one[None]])
            assert len(np.unique(expected)) > 20
            np.testing.assert_array_equal(session(one[None]), expected)
            assert runner == "golden" or session.cycles == program.cycles
