"""Maxima on a network core equal their kernels, in one list."""

import contextlib

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL, SPRAM
from tiers import quick

from weft.sim.network_core import SimulatedRunner

CORES = pytest.mark.parametrize("config", [
    pytest.param(config, id=config.array.name, marks=marks)
    for config, marks in (
        (LARGE, ()), (SMALL, pytest.mark.slow), (ODD, pytest.mark.long), (SPRAM, pytest.mark.slow),
    )
])
POOLS = [  # shape, kernel, stride, padding, output
    ((6, 8, 8), (2, 2), (2, 2), (0, 0), (3, 4)),
    ((7, 9, 5), (2, 2), (2, 2), (0, 0), (4, 5)),  # windows reach beyond the map
    ((6, 7, 3), (3, 3), (1, 1), (1, 1), (6, 7)),
    ((8, 5, 12), (3, 2), (2, 1), (1, 0), (4, 5)),
    ((5, 5, 1), (1, 1), (2, 2), (0, 0), (3, 3)),
    ((9, 4, 20), (4, 4), (1, 1), (0, 0), (6, 1)),
    ((1, 30, 6), (1, 5), (1, 3), (0, 2), (1, 10)),
    ((12, 1, 16), (7, 1), (3, 1), (2, 0), (4, 1)),
    ((4, 4, 9), (9, 9), (1, 1), (4, 4), (4, 4)),  # windows larger than the map
]


def pooled(network, x, kernel, stride, padding, output, low=-128, high=127):
    """MAX_POOL_2D of a map."""
    half = network.half
    return network.operator(
        "MAX_POOL_2D", "tflite.max_pool", (x,), (1, *output, network.tensors[x].shape[-1]),
        kernel_size=kernel, stride=stride, padding=padding, output=output, low=low + half,
        high=high + half,
    )


@CORES
@pytest.mark.parametrize("dtype", quick(1, [np.int8, np.uint8]))
@pytest.mark.parametrize("shape, kernel, stride, padding, output", POOLS)
def test_pools_of_any_window(shape, kernel, stride, padding, output, dtype, config):
    network = OperatorNetwork(3, (1, *shape), dtype)
    first = pooled(network, 0, kernel, stride, padding, output)
    x = network.convolution(0, shape[2])
    second = pooled(network, x, kernel, stride, padding, output, low=-100, high=50)
    network.convolution(second, 4)
    check_whole(network, first, second, len(network.tensors) - 1, config=config)


@CORES
@pytest.mark.parametrize("kernel", ["maximum", "minimum"])
@pytest.mark.parametrize("a, b", [
    ((5, 6, 8), (5, 6, 8)), ((1, 1, 7), (4, 6, 7)), ((4, 6, 7), (1, 6, 7)), ((3, 1, 5), (3, 4, 5)),
])
def test_of_two_maps(a, b, kernel, config):
    network = OperatorNetwork(4, (1, *a))
    other = network.input((1, *b))
    shape = tuple(map(max, a, b))
    first = network.operator(kernel.upper(), kernel, (0, other), (1, *shape))
    maps = network.convolution(0, a[2]), network.convolution(other, b[2])
    second = network.operator(kernel.upper(), kernel, maps, (1, *shape))
    check_whole(network, first, second, config=config)


def test_the_simulated_core_has_bytes_and_cycles_of_pools():
    network = OperatorNetwork(5, (1, 7, 6, 5))
    x = network.convolution(0, 6)
    y = pooled(network, x, (3, 3), (2, 2), (1, 1), (4, 3))
    other = network.convolution(y, 6)
    z = network.operator("MAXIMUM", "maximum", (y, other), (1, 4, 3, 6))
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, z, config=SIMULATED, runner=runner)
