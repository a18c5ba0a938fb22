"""Maps in another size, bilinear, equal their kernels on a network core, in one list."""

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SMALL, SPRAM
from tiers import quick

from weft.models.network_core.division import divide

CORES = pytest.mark.parametrize("config", [
    pytest.param(config, id=config.array.name, marks=marks)
    for config, marks in (
        (LARGE, ()), (SMALL, pytest.mark.slow), (ODD, pytest.mark.long), (SPRAM, pytest.mark.slow),
    )
])
KERNELS = pytest.mark.parametrize("kernel", ["tflite.resize_bilinear", "litert.resize_bilinear"])


def resized(network, x, kernel, size, half=False, corners=False):
    """RESIZE_BILINEAR of a map."""
    return network.operator(
        "RESIZE_BILINEAR", kernel, (x,), (1, *size, network.tensors[x].shape[3]), size=size,
        half_pixel_centers=half, align_corners=corners,
    )


@CORES
@KERNELS
@pytest.mark.parametrize("dtype", quick(1, [np.int8, np.uint8]))
@pytest.mark.parametrize("shape, size, half, corners", [
    ((4, 5, 6), (8, 10), False, False),
    ((4, 5, 6), (8, 10), True, False),
    ((3, 4, 9), (6, 4), True, False),
    ((3, 2, 3), (12, 8), True, False),
    ((5, 4, 3), (9, 7), False, True),
    ((1, 3, 5), (4, 12), False, False),
    ((8, 6, 4), (4, 3), True, False),
    ((4, 4, 20), (4, 4), False, False),
    ((1, 1, 8), (3, 5), False, False),
])
def test_sizes_whose_weights_fit(shape, size, half, corners, kernel, dtype, config):
    network = OperatorNetwork(3, (1, *shape), dtype)
    first = resized(network, 0, kernel, size, half, corners)
    second = resized(network, network.convolution(0, shape[2]), kernel, size, half, corners)
    check_whole(network, first, second, network.convolution(second, 4), config=config)


@pytest.mark.parametrize("kernel, shape, size, half", [
    ("tflite.resize_bilinear", (2, 2, 5), (16, 16), True),  # weights of 225 / 256
    ("litert.resize_bilinear", (1, 2, 5), (8, 16), True),
    ("tflite.resize_bilinear", (2, 3, 3), (9, 17), False),
])
def test_maps_that_grow_by_8(kernel, shape, size, half):
    network = OperatorNetwork(3, (1, *shape))
    x = resized(network, network.convolution(0, 4), kernel, size, half, not half)
    check_whole(network, x, config=LARGE)


@KERNELS
@pytest.mark.parametrize("size, reason", [
    ((48, 48), "its weights must be at most 508 / 1024, not 961 / 1024"),
    ((5, 9), "its weights must be at most 508 / "),
])
def test_sizes_whose_weights_are_too_large(size, reason, kernel):
    network = OperatorNetwork(4, (1, 3, 3, 4))
    resized(network, network.convolution(0, 4), kernel, size, half=True)
    [step] = divide(network.graph(), "tflite", 8, 8).after
    assert step.placement.reason.startswith(reason)
