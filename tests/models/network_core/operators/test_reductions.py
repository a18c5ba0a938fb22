"""Pools and reductions on a network core equal their kernels, in one list."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL, SPRAM
from tiers import quick

from weft.models.network_core.division import divide
from weft.quantize import quantize_multiplier
from weft.sim.network_core import SimulatedRunner

CORES = pytest.mark.parametrize("config", [
    pytest.param(config, id=config.array.name, marks=marks)
    for config, marks in (
        (LARGE, ()), (SMALL, pytest.mark.slow), (ODD, pytest.mark.long), (SPRAM, pytest.mark.slow),
    )
])
TYPES = pytest.mark.parametrize("dtype", quick(1, [np.int8, np.uint8]))
SINGLE = replace(LARGE, array=replace(LARGE.array, requantize="single"))


class Reductions(OperatorNetwork):
    """A network with reductions, whose scales are at random."""

    def reduced(self, kernel, x, axes, keep=False):
        """A reduction over axes."""
        shape, rank = self.tensors[x].shape, len(self.tensors[x].shape)
        axes = tuple(axis % rank for axis in axes)
        found = tuple(
            1 if axis in axes else size for axis, size in enumerate(shape)
            if keep or axis not in axes
        )
        given = {"axes": axes, "shape": found}
        if kernel.startswith("reduce"):
            return self.operator("REDUCE", kernel, (x,), found, **given)
        zero = self._zero()
        scale = self.rng.uniform(0.5, 2)
        if kernel != "tflite.mean":
            scale /= np.prod([shape[axis] for axis in axes])
        given["zeros"] = self.zero_of(x), zero
        if kernel == "litert.sum":
            given["scale"] = float(np.float32(scale))
        else:
            given["multiplier"], given["shift"] = map(int, quantize_multiplier(scale))
        return self.operator("MEAN", kernel, (x,), found, zero=zero, **given)

    def averages(self, x, kernel, stride, padding, output, low=-128, high=127):
        """AVERAGE_POOL_2D."""
        return self.operator(
            "AVERAGE_POOL_2D", "tflite.average_pool", (x,),
            (1, *output, self.tensors[x].shape[-1]), kernel_size=kernel, stride=stride,
            padding=padding, output=output, low=low + self.half, high=high + self.half,
        )


AXES = [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3), (0, 1), (-1,)]
SHAPES = [(1, 5, 6, 7), (1, 4, 3, 16), (1, 7, 1, 1), (1, 1, 9, 20)]


@CORES
@TYPES
@pytest.mark.parametrize(
    "kernel", quick(3, ["tflite.mean", "tflite.sum", "reduce_max", "reduce_min"])
)
def test_reductions_over_any_axes(kernel, dtype, config):
    for number, shape in enumerate(SHAPES):
        network = Reductions(number, shape, dtype)
        x = network.convolution(0, shape[3])
        outputs = [
            network.reduced(kernel, (0, x)[(place + number) % 2], axes, place % 2)
            for place, axes in enumerate(AXES)
        ]
        check_whole(network, *outputs, config=config)


@pytest.mark.parametrize("kernel", ["reduce_max", "reduce_min"])
def test_the_extreme_of_one_value(kernel):
    """The result of the network has a place of its own, not that of its input."""
    network = Reductions(3, (1, 1, 5, 7))
    y = network.reduced(kernel, 0, (1,))
    z = network.reduced(kernel, network.convolution(network.input((1, 4, 4, 7)), 7), (0,))
    check_whole(network, y, z, config=LARGE)


@pytest.mark.parametrize("kernel", quick(1, ["tflite.mean", "reduce_max"]))
@pytest.mark.parametrize("shape, axes", [
    ((9, 5), (0,)), ((9, 5), (1,)), ((30,), (0,)), ((1, 1, 4, 3, 5), (2, 3)), ((3, 4, 5), (0, 2)),
    ((1, 1, 300, 4), (2,)), ((1, 3, 100, 3), (1, 2)), ((1, 1, 1, 70), (3,)),
])
def test_reductions_of_other_shapes(kernel, shape, axes):
    network = Reductions(1, shape)
    y = network.reduced(kernel, 0, axes)
    check_whole(network, y, config=LARGE)


def test_refuses_means_of_long_rows():
    network = Reductions(1, (1, 2, 270, 4))
    y = network.reduced("tflite.mean", 0, (2,))
    [step] = divide(network.graph(y), "tflite", 8, 8).after
    assert step.placement.reason == "its kernel must be at most 255 x 255, not 1 x 270"


def test_layers_read_reductions():
    """A column and a row of pixels, without their axis."""
    network = Reductions(2, (1, 6, 4, 8))
    x = network.convolution(0, 8)
    outputs = [
        network.dense(network.reduced("tflite.mean", x, (1,)), 5, rows=4),
        network.dense(network.reduced("tflite.mean", x, (2,)), 5, rows=6),
        network.dense(network.reduced("reduce_max", x, (2,)), 5, rows=6),
        network.dense(network.reduced("reduce_min", x, (1, 2)), 5),
        network.dense(network.reduced("tflite.sum", x, (3,)), 5),
    ]
    check_whole(network, *outputs, config=SMALL)


@pytest.mark.parametrize("seed", quick(2, [20, 22, 23, 24, 25]))
def test_means_in_mode_single(seed):
    network = Reductions(seed, (1, 5, 6, 7))
    axes = [(1,), (2,), (3,), (1, 2), (1, 3), (1, 2, 3)]
    outputs = [network.reduced("litert.sum", 0, each) for each in axes]
    check_whole(network, *outputs, config=SINGLE)


POOLS = [  # shape, kernel, stride, padding, output, layers
    ((6, 7, 5), (3, 3), (1, 1), (1, 1), (6, 7), 9),
    ((6, 7, 8), (2, 2), (2, 2), (0, 0), (3, 4), 2),
    ((9, 9, 3), (5, 5), (2, 2), (2, 2), (5, 5), 9),
    ((8, 5, 12), (3, 2), (2, 1), (0, 0), (3, 4), 1),
    ((5, 4, 4), (7, 7), (1, 1), (3, 3), (5, 4), 3),  # windows larger than the map
    ((1, 30, 6), (1, 4), (1, 3), (0, 1), (1, 10), 2),
    ((6, 6, 16), (6, 6), (6, 6), (0, 0), (1, 1), 1),
]


@CORES
@pytest.mark.parametrize("dtype", quick(1, [np.int8, np.uint8]))
@pytest.mark.parametrize("shape, kernel, stride, padding, output, layers", POOLS)
def test_averages_of_any_window(shape, kernel, stride, padding, output, layers, dtype, config):
    network = Reductions(3, (1, *shape), dtype)
    first = network.averages(0, kernel, stride, padding, output)
    x = network.convolution(0, shape[2])
    second = network.averages(x, kernel, stride, padding, output, low=-100, high=50)
    network.convolution(second, 4)
    graph = network.graph(first, second)
    assert len(divide(graph, "tflite", 8, 8).layers) == 2 * layers + 2
    check_whole(network, first, second, len(network.tensors) - 1, config=config)


def test_averages_in_mode_single():
    """Ties are rounded away from zero, though the lanes round them up."""
    for count in (2, 4, 6, 49, 64, 100):
        network = Reductions(4, (1, 3, count, 5))
        y = network.averages(0, (1, count), (1, 1), (0, 0), (3, 1))
        check_whole(network, y, config=SINGLE)


@pytest.mark.parametrize("kernel, axes, count", [
    ("reduce_max", (1,), 2 * 3), ("reduce_max", (1, 2), 2 * (3 + 3)),
    ("reduce_min", (3,), 2 * 5), ("tflite.mean", (1, 2, 3), 1), ("tflite.sum", (3,), 1),
])
def test_the_layers_of_reductions(kernel, axes, count):
    network = Reductions(5, (1, 5, 8, 20))
    y = network.reduced(kernel, 0, axes)
    assert len(divide(network.graph(y), "tflite", 8, 8).layers) == count


def test_the_simulated_core_has_bytes_and_cycles_of_reductions():
    network = Reductions(6, (1, 5, 4, 5))
    x = network.convolution(0, 5)
    outputs = [
        network.averages(x, (3, 3), (1, 1), (1, 1), (5, 4)),
        network.reduced("tflite.mean", x, (1, 3)), network.reduced("reduce_max", x, (2, 3)),
    ]
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, *outputs, config=SIMULATED, runner=runner)
