"""SOFTMAX on a core that has it, in one list; without the option the host computes it."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, PROGRAM, ROW, SIMULATED, SMALL, SPRAM

from weft.models.network_core.compiler import compile_network_core
from weft.models.target import NetworkTarget
from weft.network_core.config import MAX_SOFTMAX
from weft.sim.network_core import SimulatedRunner

CORES = pytest.mark.parametrize(
    "config", [replace(config, softmax=True) for config in (LARGE, SMALL, ODD, ROW, PROGRAM)],
    ids=lambda config: config.array.name,
)


def softmax(network, x, power=0, **fields):
    """SOFTMAX of a tensor; the scale of its values is 2**power / 16."""
    given = {
        "multiplier": 1 << 30, "left_shift": 23 + power, "least": -(31 << 3 - power),
        "dtype": network.dtype.name,
    }
    return network.operator(
        "SOFTMAX", "tflite.softmax", (x,), network.tensors[x].shape, **given | fields
    )


def reasons(network, *outputs, config):
    """Why operators are on the host."""
    program = compile_network_core(network.graph(*outputs), NetworkTarget("core", config))
    return [step.placement.reason for step in program.host]


@CORES
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_between_layers(config, dtype):
    network = OperatorNetwork(1, (1, 4, 3, 5), dtype)
    x = softmax(network, network.convolution(0, 7))
    y = softmax(network, network.convolution(x, 9), power=2)
    check_whole(network, softmax(network, network.dense(y, 10), power=2), config=config)


def test_between_tables():
    """The table of a SOFTMAX is loaded when the job with another one has ended, and so on."""
    network = OperatorNetwork(2, (1, 3, 3, 4))
    x = network.convolution(0, 6)
    for power in (1, 1, 0):
        x = network.table(softmax(network, network.add(x, network.convolution(x, 6)), power))
        x = softmax(network, softmax(network, x, power), power)
    check_whole(network, x, config=replace(SMALL, softmax=True))


@pytest.mark.parametrize("lines, b_words", [(4, 512), (512, 20), (4, 20)])
def test_between_layers_whose_parameters_do_not_stay(lines, b_words):
    """A SOFTMAX has no words and no lines: it takes no part of the buffers."""
    network = OperatorNetwork(6, (1, 5, 4, 7))
    x = network.convolution(network.convolution(0, 30), 24)
    y = network.convolution(softmax(network, x), 40)
    network.dense(softmax(network, y), 9)
    config = replace(LARGE, softmax=True, lines=lines, b_words=b_words)
    check_whole(network, len(network.tensors) - 1, config=config)


@pytest.mark.parametrize("columns", [1, 2, 255, 1000])
def test_columns(columns):
    network = OperatorNetwork(3, (1, 2, 2, columns))
    check_whole(network, softmax(network, 0), config=replace(LARGE, softmax=True))


def test_on_a_simulated_core():
    network = OperatorNetwork(4, (1, 4, 4, 3))
    x = softmax(network, network.convolution(0, 6), power=1)
    y = softmax(network, network.dense(network.add(x, network.convolution(x, 6)), 10), power=2)
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, y, config=SIMULATED, runner=runner)


@pytest.mark.parametrize("config", [LARGE, SPRAM], ids=lambda config: config.array.name)
def test_without_the_option(config):
    network = OperatorNetwork(5, (1, 4, 4, 3))
    y = softmax(network, network.convolution(0, 6))
    assert reasons(network, y, config=config) == ["the core has no unit for it"]


def test_refusals():
    config = replace(LARGE, softmax=True)
    network = OperatorNetwork(6, (1, 2, 2, 3))
    y = softmax(network, network.convolution(0, 6), dtype="int16")
    tensors = network.tensors
    tensors[y] = replace(tensors[y], dtype=np.dtype(np.int16))
    assert reasons(network, y, config=config) == ["its results must have 8 bits, not 16"]

    network = OperatorNetwork(7, (1, 1, 1, MAX_SOFTMAX + 1))
    x = network.dense(softmax(network, 0), 4)
    found = reasons(network, x, config=config)
    assert found == ["a row must have at most 4,095 values, not 4,096"]
