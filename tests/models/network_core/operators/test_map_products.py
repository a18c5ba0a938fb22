"""Products of two maps on a network core: one list, with the bytes of golden."""

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import pair
from lowered_operators import OperatorNetwork, check_whole
from network_cores import EARLY, LARGE, MICRO, ODD, PROGRAM, ROW, SIMULATED, SMALL, TINY
from tiers import tiers

from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.second_place import second_place
from weft.models.target import NetworkTarget
from weft.sim.network_core import SimulatedRunner

PLAIN = replace(LARGE, array=replace(LARGE.array, multiplier="plain"))
CORES = {"8x8x8": LARGE, "plain": PLAIN, "8x4x4": SMALL, "3x2x8": ODD, "5x8x2": TINY}


class Products(OperatorNetwork):
    """A network with products of maps."""

    def product(self, x, b, *, zeros=None, **stored):
        """A product of two tensors."""
        node = pair(self.rng, x, b, self.tensors, position=len(self.nodes), **stored)
        x_zero, b_zero = zeros or (self.zero_of(x), self.zero_of(b))
        self.nodes.append(replace(node, x_zero=x_zero, w_zero=np.array([b_zero])))
        return node.outputs[0]


def stored(shape, transposed):
    """A shape whose last axes are exchanged if ``transposed``."""
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


@pytest.mark.parametrize("config", tiers(CORES, "8x8x8"))
@pytest.mark.parametrize("m, k, n", [(5, 7, 9), *(
    pytest.param(*shape, marks=pytest.mark.slow)
    for shape in ((1, 1, 1), (16, 16, 16), (3, 40, 2), (20, 9, 33))
)])
def test_each_shape(config, m, k, n):
    """Both operands stored both ways."""
    outputs, network = [], Products(1, (1, m, k))
    for x_transposed, b_transposed in itertools.product([False, True], repeat=2):
        x = network.input(stored((1, m, k), x_transposed)) if x_transposed else 0
        b = network.input(stored((1, k, n), b_transposed))
        outputs.append(network.product(
            x, b, x_transposed=bool(x_transposed), b_transposed=bool(b_transposed)
        ))
    check_whole(network, *outputs, config=config)


@pytest.mark.parametrize("zeros", [(-128, -128), (0, 0), *(
    pytest.param(zeros, marks=pytest.mark.slow)
    for zeros in ((127, 127), (0, -128), (-128, 5), (9, 0), (-1, 1))
)])
@pytest.mark.parametrize("config", tiers({"8x8x8": LARGE, "plain": PLAIN}, "8x8x8", "plain"))
def test_each_zero_point(config, zeros):
    """A word of -128 would be 128, so two words of 64 are in its place."""
    network = Products(2, (1, 6, 11))
    b = network.input((1, 10, 11))
    y = network.product(0, b, zeros=zeros, b_transposed=True)
    check_whole(network, y, config=config)


@pytest.mark.parametrize("left, right", [
    ((1, 4, 5), (2, 5, 6)), *(pytest.param(*shapes, marks=pytest.mark.slow) for shapes in (
        ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 3, 4, 5), (3, 5, 6)), ((3, 4, 5), (1, 5, 6)),
        ((4, 5), (5, 6)),
    ))
])
def test_a_batch_of_products(left, right):
    network = Products(3, left)
    check_whole(network, network.product(0, network.input(right)), config=LARGE)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_between_layers(dtype):
    """Both operands are computed, and a layer reads the product."""
    network = Products(4, (1, 1, 12, 10), dtype)
    x, b = network.convolution(0, 9), network.convolution(0, 9)
    y = network.product(x, b, b_transposed=True)
    check_whole(network, network.convolution(y, 5), config=LARGE)


def test_computed_weights_with_a_bias():
    """FULLY_CONNECTED."""
    network = Products(10, (1, 6, 11))
    y = network.product(0, network.input((1, 10, 11)), b_transposed=True)
    network.nodes[-1] = replace(
        network.nodes[-1], operator="FULLY_CONNECTED", bias=np.arange(10) * 5000 - 20_000
    )
    check_whole(network, y, config=LARGE)


def test_behind_stripes():
    """Large maps are computed in stripes of rows, and the maps of the product keep their places."""
    network = Products(9, (1, 64, 48, 3))
    x = network.convolution(network.convolution(0, 24), 16, stride=(8, 8))
    x, b = network.convolution(x, 8), network.convolution(x, 8)
    y = network.product(x, b, b_transposed=True)
    config = replace(LARGE, words=1024)
    whole = check_whole(network, y, config=replace(LARGE, words=8192))
    assert whole.memory_used > config.memory_bytes
    assert check_whole(network, y, config=config).memory_used <= config.memory_bytes


def test_a_square():
    """Both operands are one map."""
    network = Products(5, (1, 7, 9))
    check_whole(network, network.product(0, 0, b_transposed=True), config=SMALL)


@pytest.mark.parametrize("shape, axes", [
    ((1, 1, 90, 70), (0, 1, 3, 2)), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ((70, 90), (1, 0)), ((1, 2, 68, 66), (0, 3, 1, 2)), ((1, 67, 2, 66), (0, 3, 2, 1)),
        ((1, 67, 2, 66), (0, 2, 3, 1)),
    ))
])
@pytest.mark.parametrize("config", tiers({"8x8x8": LARGE, "plain": PLAIN, "8x4x4": SMALL}, "8x8x8"))
def test_a_large_transpose(config, shape, axes):
    """It needs too many jobs that move values."""
    network = Products(8, shape)
    y = network.operator(
        "TRANSPOSE", "transpose", (0,), tuple(shape[axis] for axis in axes), axes=axes
    )
    y = network.product(y, network.input((shape[axes[-1]], 3)))  # the host would be the last one
    check_whole(network, y, config=config)


@pytest.mark.parametrize("config", tiers(
    {"3x4x4": SIMULATED, "program": PROGRAM, "microprogram": MICRO, "early": EARLY, "row": ROW},
    "3x4x4",
))
def test_on_the_simulated_core(config):
    """The hardware has the bytes of golden, in the predicted cycles."""
    network = Products(6, (1, 1, 7, 9))
    x, b = network.convolution(0, 6), network.convolution(0, 6)
    y = network.product(x, b, b_transposed=True)
    y = network.convolution(network.product(y, x), 3)
    with contextlib.closing(SimulatedRunner(config)) as runner:
        check_whole(network, y, config=config, runner=runner)


@pytest.mark.parametrize("config", [LARGE, PROGRAM], ids=["maps", "program"])
def test_several_inputs_one_after_the_other(config):
    """The host writes an input while a list computes; each list loads words from its own maps."""
    network = Products(11, (1, 4, 5))
    y = network.product(0, network.input((1, 5, 3)))
    graph = replace(network.graph(y), inputs=tuple(network.inputs))
    program = compile_network_core(graph, NetworkTarget("core", config))
    assert second_place(program, config.program_bytes) is not None
    inputs = [
        np.random.default_rng(n).integers(-128, 128, (4, *graph.tensors[n].shape[1:]), np.int8)
        for n in graph.inputs
    ]
    with program.open("golden") as session:
        found = session(inputs)
    for number in range(4):
        one = [value[number : number + 1] for value in inputs]
        np.testing.assert_array_equal(found[number], run_graph(graph, one)[y][0])


def test_a_product_that_the_host_divides():
    network = Products(7, (1, 1, 4, 5))
    x = network.convolution(0, 6)
    y = network.product(x, x, b_transposed=True)
    program = compile_network_core(network.graph(y), NetworkTarget("core", SIMULATED), batch=2)
    [step] = program.products
    assert "batch must be 1" in step.placement.reason
