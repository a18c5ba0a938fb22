"""Weights of 9 bits, which are uint8 less their zero point, as two or three weights of 8 bits."""

import contextlib
import dataclasses

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL, SPRAM
from tiers import quick

from weft.sim.network_core import SimulatedRunner


def wide(network, rng, low, high):
    """Give the last product weights from ``low`` to ``high``, which all occur."""
    node = network.nodes[-1]
    weights = rng.integers(low, high + 1, node.weights.shape)
    weights.flat[:2] = low, high
    zero = -128 - low
    network.nodes[-1] = dataclasses.replace(
        node, weights=(weights + zero).astype(np.int16), w_zero=np.full(1, zero)
    )


@pytest.mark.parametrize("config", quick(2, [LARGE, SPRAM, SMALL, ODD]), ids=lambda c: c.array.name)
@pytest.mark.parametrize("low, high", [(-200, 54), (-255, 0), (0, 255), (-127, 128)])
@pytest.mark.parametrize("fields", [
    dict(kernel=(1, 1), padding=(0, 0, 0, 0)), dict(kernel=(1, 3), padding=(0, 0, 1, 1)),
    dict(kernel=(3, 1), padding=(1, 1, 0, 0), dilation=(2, 1)), dict(kernel=(3, 3)),
    dict(kernel=(3, 2), stride=(2, 2)), dict(kernel=(3, 3), groups=6),
], ids=str)
def test_convolutions(fields, low, high, config):
    rng = np.random.default_rng(2)
    network = OperatorNetwork(3, (1, 6, 7, 6), np.uint8)
    columns = 1 if "groups" in fields else 9
    x = network.convolution(0, columns, **fields)
    wide(network, rng, low, high)
    if "groups" in fields or network.tensors[x].shape[1] > 4:
        network.convolution(x, columns, **fields)
        wide(network, rng, low, high)
    network.dense(len(network.tensors) - 1, 3)
    wide(network, rng, low, high)
    check_whole(network, x, len(network.tensors) - 1, config=config)


def test_the_simulated_core_reads_a_pixel_twice():
    rng = np.random.default_rng(2)
    network = OperatorNetwork(3, (1, 4, 5, 5))
    x = network.convolution(0, 6, kernel=(1, 1), padding=(0, 0, 0, 0))
    wide(network, rng, -200, 54)
    network.convolution(x, 4)
    wide(network, rng, -200, 54)
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, len(network.tensors) - 1, config=SIMULATED, runner=runner)
