"""Networks become layers of the chip: padded channels, blocks of pixels, pools, ADD."""

import numpy as np
import pytest
from graphs import convolution, fully_connected, graph_of, tensor
from rejects import rejects

from tools.chip_price.layers import NO_PADDING, layers_of, space_to_depth
from weft.network.ir import Host, Window


def host(tensors, operator, inputs, shape, kernel, **attributes):
    tensors.append(tensor(shape))
    return Host(
        operator=operator, name=operator, position=(0,), inputs=inputs,
        outputs=(len(tensors) - 1,), kernel=kernel, attributes=attributes, reason="",
    )


@pytest.fixture
def residual():
    """Two convolutions, ADD of their results, a pool, a matrix product, and SOFTMAX."""
    rng, tensors = np.random.default_rng(1), [tensor((1, 4, 4, 3))]
    nodes = [
        convolution(rng, 0, tensors, 16),
        convolution(rng, 1, tensors, 1, groups=16),
        convolution(rng, 1, tensors, 16),
        host(tensors, "ADD", (3, 2), (1, 4, 4, 16), "tflite.add"),
        host(
            tensors, "AVERAGE_POOL_2D", (4,), (1, 1, 1, 16), "tflite.average_pool",
            kernel_size=(4, 4), stride=(4, 4), padding=(0, 0), output=(1, 1),
        ),
        host(tensors, "RESHAPE", (5,), (1, 16), "reshape"),
        fully_connected(rng, 6, tensors, 10),
        host(tensors, "SOFTMAX", (7,), (1, 10), "tflite.softmax"),
    ]
    return graph_of(nodes, tensors)


def test_layers(residual):
    layers, received = layers_of(residual, 8, 8)
    assert received == 10
    assert [layer.name for layer in layers] == [
        "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D + ADD", "AVERAGE_POOL_2D", "FULLY_CONNECTED",
    ]
    first, depthwise, add, pool, dense = layers
    assert (first.channels, first.columns, first.sent, first.input_bytes) == (8, 16, 48, 128)
    assert (depthwise.depthwise, depthwise.channels, depthwise.taps) == (True, 16, 9)
    # The convolution has more words of K than the depthwise one: it adds, and it runs last.
    assert (add.x, add.y, add.residual) == (1, 4, 2)
    assert (pool.window.stride, pool.taps, pool.constant, pool.x) == ((1, 1), 16, True, 4)
    assert (dense.m, dense.channels, dense.columns, dense.x) == (1, 16, 10, 5)


def test_pointwise_convolution_is_one_row():
    rng, tensors = np.random.default_rng(1), [tensor((1, 3, 5, 8))]
    node = convolution(rng, 0, tensors, 8)
    window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, (3, 5), (3, 5))
    tensors[1] = tensor((1, 3, 5, 8))
    node = type(node)(**{**vars(node), "window": window, "weights": node.weights[:, :8]})
    (layer,), _ = layers_of(graph_of([node], tensors), 8, 8)
    assert (layer.window.input, layer.window.output, layer.m) == ((1, 15), (1, 15), 15)


def test_flattened_map_keeps_unused_channels():
    rng, tensors = np.random.default_rng(1), [tensor((1, 2, 2, 8))]
    nodes = [
        convolution(rng, 0, tensors, 12), host(tensors, "RESHAPE", (1,), (1, 48), "reshape"),
        fully_connected(rng, 2, tensors, 10),
    ]
    layers, _ = layers_of(graph_of(nodes, tensors), 8, 8)
    assert layers[1].channels == 4 * 16  # 12 channels are stored as 16


def test_space_to_depth():
    # 49 x 10, kernel 10 x 4, stride 2, border 4 above and 1 at the left.
    window = Window((10, 4), (2, 2), (1, 1), (4, 5, 1, 1), (49, 10), (25, 5))
    blocks, channels = space_to_depth(window, 1)
    assert (blocks.kernel, blocks.stride, blocks.padding) == ((5, 2), (1, 1), (2, 0, 0, 0))
    assert (blocks.input, blocks.output, channels) == ((25, 6), (25, 5), 4)


def test_rejects_an_operator_between_layers():
    rng, tensors = np.random.default_rng(1), [tensor((1, 4, 4, 8))]
    nodes = [
        convolution(rng, 0, tensors, 8), host(tensors, "TANH", (1,), (1, 4, 4, 8), "table"),
        convolution(rng, 2, tensors, 8),
    ]
    with rejects(
        ValueError, "net: operators before CONV_2D must run on the chip, not TANH"
    ):
        layers_of(graph_of(nodes, tensors), 8, 8)


def test_rejects_an_addition_of_maps_with_other_readers():
    rng, tensors = np.random.default_rng(1), [tensor((1, 4, 4, 8))]
    nodes = [
        convolution(rng, 0, tensors, 8),
        host(tensors, "ADD", (1, 0), (1, 4, 4, 8), "tflite.add"),
        convolution(rng, 1, tensors, 8),
    ]
    with rejects(ValueError, "net: an input of ADD must be a product that only ADD reads"):
        layers_of(graph_of(nodes, tensors), 8, 8)


def test_rejects_a_pool_with_padding():
    tensors = [tensor((1, 4, 4, 8))]
    node = host(
        tensors, "AVERAGE_POOL_2D", (0,), (1, 4, 4, 8), "tflite.average_pool", kernel_size=(3, 3),
        stride=(1, 1), padding=(1, 1), output=(4, 4),
    )
    with rejects(ValueError, "net: padding of AVERAGE_POOL_2D must be 0 on the chip"):
        layers_of(graph_of([node], tensors), 8, 8)
