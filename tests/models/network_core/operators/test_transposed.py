"""Transposed convolutions: a layer for each place in a stride."""

import contextlib
import dataclasses
import math

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SIMULATED, SPRAM

from weft.models.network_core.compiler import compile_network_core
from weft.models.target import NetworkTarget
from weft.sim.network_core import SimulatedRunner


def grown(network, x, columns, kernel, stride, cropped=(0, 0), groups=1):
    """A transposed convolution; ``cropped`` are rows and columns cut off at the top and left."""
    _, height, width, _ = network.tensors[x].shape
    output = tuple(
        (n - 1) * s + k - 2 * c for n, s, k, c in zip(
            (height, width), stride, kernel, cropped, strict=True
        )
    )
    y = network.convolution(x, columns, kernel=kernel, padding=(9, 9, 9, 9), groups=groups)
    node, made = network.nodes[-1], network.tensors[y]
    padding = tuple(k - 1 - c for k, c in zip(kernel, cropped, strict=True) for _ in (0, 1))
    window = dataclasses.replace(node.window, spread=stride, output=output, padding=padding)
    network.nodes[-1] = dataclasses.replace(node, operator="TRANSPOSE_CONV", window=window)
    network.tensors[y] = dataclasses.replace(made, shape=(1, *output, groups * columns))
    return y


@pytest.mark.parametrize("config", [LARGE, ODD, SPRAM], ids=lambda c: c.array.name)
@pytest.mark.parametrize("fields", [
    dict(kernel=(2, 2), stride=(2, 2)), dict(kernel=(3, 3), stride=(2, 2), cropped=(1, 0)),
    dict(kernel=(1, 4), stride=(2, 3), cropped=(0, 1)), dict(kernel=(4, 2), stride=(1, 2)),
    dict(kernel=(3, 3), stride=(2, 2), groups=6),
], ids=str)
def test_transposed_convolutions(fields, config):
    network = OperatorNetwork(3, (1, 4, 5, 6))
    x = grown(network, 0, 1 if "groups" in fields else 7, **fields)
    x = grown(network, network.convolution(x, 5), 3, (2, 2), (2, 2))
    program = check_whole(network, x, config=config)
    macs = [math.prod(n.window.output) * n.weights.size for n in network.nodes]
    assert [layer.macs for layer in program.layers] == macs


def test_weights_of_9_bits():
    network = OperatorNetwork(3, (1, 3, 4, 5), np.uint8)
    x = grown(network, network.convolution(0, 6), 4, (3, 3), (2, 2))
    node = network.nodes[-1]
    weights = network.rng.integers(0, 256, node.weights.shape).astype(np.int16)
    network.nodes[-1] = dataclasses.replace(node, weights=weights, w_zero=np.full(1, 77))
    check_whole(network, x, config=LARGE)


def test_padding_before_it_is_a_layer_of_its_own():
    network = OperatorNetwork(3, (1, 4, 4, 8))
    x = network.pad(network.convolution(0, 8), (1, 0, 2, 1))
    check_whole(network, grown(network, x, 4, (2, 2), (2, 2)), config=LARGE)


def test_a_dilated_one_has_its_products_from_the_core():
    network = OperatorNetwork(3, (1, 4, 4, 8))
    x = grown(network, network.convolution(0, 8), 4, (3, 3), (2, 2))
    node = network.nodes[-1]
    network.nodes[-1] = dataclasses.replace(node, window=dataclasses.replace(
        node.window, dilation=(2, 2), padding=(4, 4, 4, 4), output=(11, 11)
    ))
    network.tensors[x] = dataclasses.replace(network.tensors[x], shape=(1, 11, 11, 4))
    program = compile_network_core(network.graph(x), NetworkTarget("core", LARGE))
    [step] = program.products
    assert step.placement.on_weft
    assert step.placement.reason == (
        "a transposed convolution must have no dilation and no second stride"
    )


def test_on_the_simulated_core():
    network = OperatorNetwork(3, (1, 3, 4, 5))
    x = grown(network, network.convolution(0, 6), 5, (3, 3), (2, 2), (1, 0))
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, network.convolution(x, 4), config=SIMULATED, runner=runner)
