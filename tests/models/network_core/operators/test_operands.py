"""Operators of two operands on a network core equal their kernels, in one list."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from lowered_operators import check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL, SPRAM
from operand_networks import Operands
from tiers import quick

from weft.models.network_core.division import divide
from weft.sim.network_core import SimulatedRunner

CORES = pytest.mark.parametrize(
    "config", quick(1, [LARGE, SPRAM, SMALL, ODD]), ids=lambda config: config.array.name
)
TYPES = pytest.mark.parametrize("dtype", [np.int8, np.uint8])
SINGLE = replace(LARGE, array=replace(LARGE.array, requantize="single"))
FULL = 5, 6, 7


def behind_a_layer(network, channels=FULL[2]):
    """A map that a layer computes."""
    return network.convolution(0, channels)


SHAPES = [  # operands beside a map of FULL
    FULL, (1, 6, 7), (5, 1, 7), (1, 1, 7), (7,), (5, 6, 1), (1, 6, 1), (1, 1, 1),
]


@CORES
@pytest.mark.parametrize("kernel", ["tflite.add", "tflite.sub", "maximum", "minimum"])
def test_of_two_maps(kernel, config):
    """Both orders; of the host, and of layers."""
    network = Operands(1, (1, *FULL))
    x, outputs = behind_a_layer(network), []
    for shape in SHAPES[:4] + SHAPES[5:]:
        other = network.input((1, *shape))
        y = network.convolution(other, shape[2])
        outputs += [
            network.apply(kernel, 0, other), network.apply(kernel, other, 0),
            network.apply(kernel, x, y), network.apply(kernel, y, x),
        ]
    check_whole(network, *outputs, config=config)


@CORES
@pytest.mark.parametrize("dtype", quick(1, [np.int8, np.uint8]))
@pytest.mark.parametrize("kernel", ["tflite.sub", "maximum", "minimum"])
def test_of_constants(kernel, dtype, config):
    network = Operands(2, (1, *FULL), dtype)
    outputs = []
    for number, shape in enumerate(SHAPES):
        x, constant = behind_a_layer(network), network.values(*shape)
        outputs.append(network.apply(kernel, x, constant))
        outputs.append(network.apply(kernel, constant, 0))
        network.convolution(outputs[-1 - number % 2], 3)
    check_whole(network, *outputs, config=config)


@pytest.mark.parametrize("a, b", [
    ((4, 1, 5), (1, 3, 5)), ((4, 3, 1), (1, 1, 5)), ((1, 3, 1), (4, 1, 5)), ((20, 5), (20, 1)),
    ((20, 1), (1, 5)), ((5,), (20, 1)),
])
@pytest.mark.parametrize("kernel", ["tflite.add", "maximum"])
def test_each_operand_is_repeated(kernel, a, b):
    network = Operands(3, a if len(a) < 3 else (1, *a))
    other = network.input(b if len(b) < 3 else (1, *b))
    constant = network.values(*b)
    outputs = network.apply(kernel, 0, other), network.apply(kernel, 0, constant)
    check_whole(network, *outputs, config=LARGE)


def test_the_maps_of_a_batch():
    network = Operands(4, (2, 3, 4, 5))
    other, constant = network.input((2, 3, 4, 5)), network.values(5)
    outputs = [
        network.apply(kernel, 0, b) for kernel in ("tflite.sub", "minimum")
        for b in (other, constant)
    ]
    outputs.append(network.product(0, constant))
    check_whole(network, *outputs, config=SMALL)


@CORES
@TYPES
@pytest.mark.parametrize("kernel", ["tflite.mul", "tflite.prelu"])
def test_products_with_channels(kernel, dtype, config):
    """Constants of 8 bits less their zero points have 9 bits."""
    outputs = []
    network = Operands(5, (1, *FULL), dtype)
    for zero, shape in ((-128, (7,)), (127, (1, 1, 7)), (3, (1, 1, 1, 7))):
        values = np.resize(np.array([0, 255, 128, 1, 77, 250]), 7).reshape(shape)
        constant = network.constant(
            (values + network.half - 128).astype(dtype), zero=zero + network.half
        )
        x = behind_a_layer(network)
        outputs += [network.apply(kernel, x, constant), network.apply(kernel, 0, constant)]
        if kernel == "tflite.mul":
            outputs.append(network.product(constant, x))
    one = network.input((1, 4, 3, 1))
    outputs.append(network.apply(kernel, one, constant))
    check_whole(network, *outputs, config=config)


@pytest.mark.parametrize("seed", quick(2, [*range(6)]))
@pytest.mark.parametrize("kernel", ["litert.add", "litert.mul", "tflite.prelu"])
def test_in_mode_single(kernel, seed):
    network = Operands(10 + seed, (1, *FULL))
    outputs = [network.apply(kernel, 0, network.values(7))]
    if kernel == "litert.add":
        outputs.append(network.total(0, network.input((1, 1, 6, 7)), kernel))
    try:
        check_whole(network, *outputs, config=SINGLE)
    except AssertionError:
        assert kernel == "tflite.prelu"  # TFLite Micro's rounding
        [step] = divide(network.graph(*outputs), "single", 8, 8).after
        assert step.placement.reason == "its results are not exact in mode single"


@pytest.mark.parametrize("kernel, other, reason", [
    ("tflite.mul", FULL, "the core does not multiply maps"),
    ("tflite.prelu", FULL, "one of its inputs must be a constant"),
])
def test_refuses_products_of_maps(kernel, other, reason):
    network = Operands(6, (1, *FULL))
    y = network.apply(kernel, 0, network.input((1, *other)))
    [step] = divide(network.graph(y), "tflite", 8, 8).after
    assert step.placement.reason == reason


@pytest.mark.parametrize("fed", ["host", "layer"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_products_of_maps(dtype, fed):
    """With the option: of equal maps, of a gate of one pixel, and of constants of pixels."""
    network, outputs = Operands(7, (1, *FULL), dtype), []
    for shape in (FULL, (1, 1, 7), (5, 6, 1)):
        x = behind_a_layer(network) if fed == "layer" else 0
        other = network.input((1, *shape))
        outputs += [network.product(x, other), network.product(other, x)]
    outputs.append(network.product(0, network.values(1, 6, 7)))
    check_whole(network, *outputs, config=replace(LARGE, multiply_maps=True))


def test_the_layers_of_operators():
    """A constant of one pixel is a layer; products and differences of channels need none."""
    def layers(kernel, *shape, fused=False):
        network = Operands(8, (1, *FULL))
        x = behind_a_layer(network)
        y = network.apply(kernel, x, network.values(*shape))
        outputs = (y,) if fused else (x, y)
        graph = divide(network.graph(*outputs), "tflite", 8, 8)
        return len(graph.layers) - 1

    assert layers("tflite.add", 7) == 2 and layers("tflite.add", 7, fused=True) == 1
    assert layers("tflite.sub", *FULL) == 3 and layers("tflite.sub", *FULL, fused=True) == 2
    assert layers("tflite.mul", 7) == 1
    assert layers("tflite.prelu", 7) == layers("maximum", 7) == layers("minimum", 7) == 2
    assert layers("maximum", 1, 6, 7) == 4


def test_the_simulated_core_has_bytes_and_cycles_of_operands():
    network = Operands(9, (1, 4, 3, 5))
    x = network.convolution(0, 5)
    x = network.product(x, network.constant(np.array([1, 127, -128, 5, -7], np.int8), zero=-128))
    x = network.total(x, network.values(4, 3, 5), "tflite.sub")
    x = network.prelu(x, network.values(5))
    x = network.extreme(x, network.values(5), "minimum")
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, x, config=SIMULATED, runner=runner)


@pytest.mark.parametrize("config", [LARGE, ODD], ids=lambda config: config.array.name)
@pytest.mark.parametrize("shape", [(1, 300, 2), (2, 260, 2)])
def test_a_long_constant_is_written_in_parts(shape, config):
    network = Operands(4, (1, *shape))
    x = network.convolution(0, 2, kernel=(1, 1), padding=(0, 0, 0, 0))
    check_whole(network, network.total(x, network.values(*shape)), config=config)


def test_a_constant_may_be_too_long():
    network = Operands(4, (1, 128, 128, 2))
    x = network.convolution(0, 2, kernel=(1, 1), padding=(0, 0, 0, 0))
    x = network.host(x, "RESHAPE", "reshape", (1, 16384, 2), shape=(1, 16384, 2))
    network.total(x, network.values(1, 16384, 2))
    [step] = divide(network.graph(), "tflite", 8, 8).after
    assert step.placement.reason == "its constant must have at most 16,320 pixels, not 16,384"
