"""Networks become layers: blocks of pixels, pools, ADD; what the core cannot run is refused."""

import dataclasses

import numpy as np
import pytest
from chip_networks import NetworkBuilder
from graphs import chain
from rejects import rejects

from weft.network.chip.division import divide
from weft.network.chip.layers import WeightLayout
from weft.network.errors import ModelError

SOFTMAX = dict(multiplier=1 << 30, left_shift=24, least=-124, dtype="int8")


@pytest.fixture
def builder():
    return NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))


def test_a_residual_network(builder):
    first = builder.convolution(0, 16)
    depthwise = builder.convolution(first, 1, groups=16)
    other = builder.convolution(first, 16)
    total = builder.add(other, depthwise)
    pooled = builder.pool(total, 6, 6)
    flat = builder.host(pooled, "RESHAPE", "reshape", (1, 16), shape=(1, 16))
    dense = builder.dense(flat, 10)
    y = builder.host(dense, "SOFTMAX", "tflite.softmax", (1, 10), **SOFTMAX)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert [layer.operators for layer in graph.layers] == [
        ("CONV_2D",), ("DEPTHWISE_CONV_2D",), ("CONV_2D", "ADD"), ("AVERAGE_POOL_2D",),
        ("FULLY_CONNECTED",),
    ]
    _, second, add, pool, _ = graph.layers
    # The convolution has more weights than the depthwise one: it adds, and it runs last.
    assert (add.position, add.added, add.addition.add_zero) == (
        (2, 3), second.y, builder.zero_of(depthwise)
    )
    assert graph.maps[add.y].tensor == total
    assert (second.layout, pool.layout) == (WeightLayout.DIAGONAL, WeightLayout.EQUAL)
    assert (pool.weights == 64).all() and pool.weights.shape == (36, 16)
    assert graph.results == {dense: graph.layers[-1].y}
    assert [step.outputs for step in graph.after] == [(y,)]
    assert [(node.operator, number) for node, number, _ in graph.renamed] == [("RESHAPE", flat)]


def test_operators_of_the_host_before_the_first_layer(builder):
    x = builder.host(0, "MAX_POOL_2D", "tflite.max_pool", (1, 3, 3, 3))
    builder.convolution(x, 8)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert [step.operators for step in graph.before] == [("MAX_POOL_2D",)]
    assert [found.form and found.form.tensor for found in graph.maps] == [x, None]


def test_add_without_a_layer_before_it_is_a_copy(builder):
    first = builder.convolution(0, 8)
    second = builder.convolution(first, 8)
    total = builder.add(first, second)  # the second one adds
    builder.add(total, second)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert [layer.operators for layer in graph.layers] == [
        ("CONV_2D",), ("CONV_2D",), ("ADD",), ("ADD",)
    ]
    assert [layer.layout for layer in graph.layers[2:]] == [WeightLayout.EQUAL] * 2


def test_convolutions_of_few_channels_read_blocks():
    """The kernel of 10 x 4, stride 2 and padding (4, 5, 1, 1) of keyword spotting."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 49, 10, 1))
    builder.convolution(0, 64, kernel=(10, 4), stride=(2, 2), padding=(4, 5, 1, 1))
    graph = divide(builder.graph(), "tflite", 8, 8)
    layer, = graph.layers
    form = graph.maps[layer.x].form
    assert (form.block, form.offset, form.map_size) == ((2, 2), (0, 1), (25, 6, 4))
    assert (layer.window.kernel, layer.window.stride) == ((5, 2), (1, 1))
    assert (layer.window.padding, layer.window.output) == ((2, 0, 0, 0), (25, 5))
    assert layer.weights.shape == (10, 4, 64)
    values = np.arange(49 * 10, dtype=np.int64).astype(np.int8)
    blocks = form.arrange(values)
    # Block (0, 1) has columns 1 and 2 of rows 0 and 1; block 0 has a column outside the map.
    assert blocks[0, 1].tolist() == [1, 2, 11, 12]
    assert blocks[0, 0].tolist() == [builder.zero_of(0), 0, builder.zero_of(0), 10]


@pytest.mark.parametrize("operator, kernel, reason", [
    ("MAX_POOL_2D", "tflite.max_pool", "no product"),
    ("AVERAGE_POOL_2D", "tflite.average_pool",
     "its windows have padding, so they have different numbers of inputs"),
])
def test_refuses_operators_between_layers(builder, operator, kernel, reason):
    x = builder.convolution(0, 8)
    x = builder.host(
        x, operator, kernel, (1, 6, 6, 8), kernel_size=(3, 3), stride=(1, 1), padding=(1, 1),
        output=(6, 6), low=-128, high=127,
    )
    builder.convolution(x, 8)
    message = (
        f"net: operator 1 ({operator} n1) does not run on a core for networks: {reason}; compile"
        " the network for a core for matrix products (a target without [chip]), which gets each"
        " layer over the link"
    )
    with rejects(ModelError, message):
        divide(builder.graph(), "tflite", 8, 8)


def changed(graph, **fields):
    """The graph, with other fields of its last node."""
    return dataclasses.replace(
        graph, nodes=(*graph.nodes[:-1], dataclasses.replace(graph.nodes[-1], **fields))
    )


@pytest.mark.parametrize("fields, reason", [
    (dict(requantization=None), "its results must be of 8 bits"),
    (dict(x_transposed=True), "its channels must be the last axis"),
    (dict(weights=None, b=0), "its second operand is computed, and B has constant weights"),
    (dict(w_zero=np.array([100])), "weights minus their zero points must be in -128..127, not in"),
])
def test_refuses_products(fields, reason):
    graph = changed(chain(np.random.default_rng(1)), **fields)
    with pytest.raises(ModelError, match=f"for networks: {reason}"):
        divide(graph, "tflite", 8, 8)


def test_refuses_other_numerics():
    graph = dataclasses.replace(chain(np.random.default_rng(1)), source="onnx")
    message = (
        "net: a core for networks has the rounding of TensorFlow Lite, and the network must be a"
        " .tflite file, not .onnx"
    )
    with rejects(ModelError, message):
        divide(graph, "tflite", 8, 8)


def test_refuses_networks_without_layers(builder):
    builder.host(0, "SOFTMAX", "tflite.softmax", (1, 6, 6, 3), **SOFTMAX)
    with rejects(ModelError, "net: the network has no layer for a core for networks"):
        divide(builder.graph(), "tflite", 8, 8)
