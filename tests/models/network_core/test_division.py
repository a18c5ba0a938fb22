"""Networks become layers: blocks of pixels, pools, ADD; what the core cannot run is refused."""

import dataclasses

import numpy as np
import pytest
from graphs import chain, pair
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from rejects import rejects

from weft.models.errors import KindError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.division import divide
from weft.models.network_core.layers import WeightLayout
from weft.models.network_core.operators.reductions import NO_UNIT
from weft.models.program import NO_MAP_PRODUCT
from weft.models.report.placement import remedy_of
from weft.models.target import target_of

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
    assert (add.position, add.added) == ((2, 3), second.y)
    # A scaled value is 0 at its zero point only.
    zeros = [np.flatnonzero(half == 0).tolist() for half in add.addition.table]
    assert zeros == [[builder.zero_of(n) % 256] for n in (depthwise, other)]
    assert graph.maps[add.y].tensor == total
    assert (second.layout, pool.layout) == (WeightLayout.DIAGONAL, WeightLayout.EQUAL)
    assert (pool.weights == 64).all()
    # The pool computes two groups of 8 channels.
    assert (pool.weights.shape, pool.parts, pool.columns) == ((36, 8), 2, 8)
    [segment] = graph.segments
    assert segment.results == {dense: graph.layers[-1].y}
    assert [step.outputs for step in graph.after] == [(y,)]
    assert [(node.operator, number) for node, number, _ in segment.renamed] == [("RESHAPE", flat)]


def test_operators_of_the_host_before_the_first_layer(builder):
    x = builder.host(0, "GATHER_ND", "gather_nd", (1, 3, 3, 3))
    builder.convolution(x, 8)
    graph = divide(builder.graph(), "tflite", 8, 8)
    [segment] = graph.segments
    assert [step.operators for step in segment.before] == [("GATHER_ND",)]
    assert [found.form and found.form.tensor for found in graph.maps] == [x, None]


def test_a_product_of_maps_needs_the_option(builder):
    first = builder.convolution(0, 8)
    builder.multiply(builder.convolution(first, 8), first)
    graph = builder.graph()
    config = network_core_config(4, 4, 4, 4, multiply_maps=True)
    divided = divide(graph, "tflite", 4, 4, config=config)
    assert [layer.operators for layer in divided.layers] == [("CONV_2D",), ("CONV_2D", "MUL")]
    assert divided.layers[1].addition.multiply and not divided.host
    for without in (None, dataclasses.replace(config, multiply_maps=False)):
        [step] = divide(graph, "tflite", 4, 4, config=without).host
        assert step.placement.reason == NO_MAP_PRODUCT
    program = compile_network_core(graph, target_of(without))
    [step] = program.host
    assert remedy_of(program, step) == "a network core with multiply_maps = true computes it"


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


def lists(graph):
    """For each list: operators of the host before it with their reasons, and its layers."""
    return [
        ([(step.operators, step.placement.reason) for step in segment.before],
         [graph.layers[n].operators for n in segment.layers])
        for segment in graph.segments
    ]


def test_operators_of_the_host_between_layers(builder):
    x = builder.softmax(builder.convolution(0, 8))
    builder.convolution(x, 8)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert lists(graph) == [
        ([], [("CONV_2D",)]), ([(("SOFTMAX",), NO_UNIT)], [("CONV_2D",)])
    ]
    assert graph.segments[0].results == {1: graph.layers[0].y} and graph.after == ()


def test_as_few_lists_as_possible(builder):
    """Two branches with operators of the host are in the same lists, and ADD follows them."""
    x = builder.convolution(0, 8)
    one = builder.convolution(builder.softmax(x), 8)
    two = builder.convolution(builder.softmax(x), 8)
    pooled = builder.softmax(builder.add(one, two))
    builder.add(builder.convolution(pooled, 8), pooled)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert lists(graph) == [
        ([], [("CONV_2D",)]),
        ([(("SOFTMAX",), NO_UNIT),
          (("SOFTMAX",), NO_UNIT)],
         [("CONV_2D",), ("CONV_2D", "ADD")]),
        ([(("SOFTMAX",), NO_UNIT)], [("CONV_2D", "ADD")]),
    ]
    # The inputs of the two branches are different, and the one of ADD is the layer's.
    written = [found.form.tensor for found in graph.maps if found.form]
    assert written == [0, one - 1, two - 1, pooled]


def test_a_layer_with_add_waits_for_the_added_map(builder):
    x = builder.convolution(0, 8)
    own = builder.convolution(x, 16)
    other = builder.convolution(builder.softmax(x), 16, groups=1, kernel=(1, 1), padding=4 * (0,))
    builder.add(own, other)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert [layers for _, layers in lists(graph)] == [
        [("CONV_2D",)], [("CONV_2D",), ("CONV_2D", "ADD")]
    ]
    assert graph.layers[2].position == (1, 4)


def test_no_list_without_a_product_follows_the_first(builder):
    x = builder.convert(builder.softmax(builder.convolution(0, 8)))
    builder.add(x, builder.convert(x))
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert len(graph.segments) == 1
    # One table computes both conversions and the sum.
    assert [(step.operators, step.placement.reason) for step in graph.after] == [
        (("SOFTMAX",), NO_UNIT), (
            ("QUANTIZE+QUANTIZE+ADD",),
            "it has no product, and the host computes an operator before it",
        ),
    ]


def test_concatenations_of_layers_cost_nothing(builder):
    x = builder.convolution(0, 16)
    y = builder.convolution(x, 8)
    first = builder.concatenation(x, y)
    z = builder.convolution(first, 5)
    builder.convolution(builder.concatenation(first, z), 8)
    graph = divide(builder.graph(), "tflite", 8, 8)
    [segment] = graph.segments
    assert [node.operator for node, _, _ in segment.renamed] == 2 * ["CONCATENATION"]
    by_tensor = {found.tensor: (found, n) for n, found in enumerate(graph.maps)}
    inner, outer = by_tensor[first][1], by_tensor[first + 2][1]
    views = [by_tensor[t][0].view for t in (x, y, first, z)]
    assert [(view.whole, view.channel) for view in views] == [
        (inner, 0), (inner, 16), (outer, 0), (outer, 24)
    ]
    assert graph.maps[outer].size == (6, 6, 29) and graph.layers[2].x == inner


def test_a_reshape_of_pixels_is_a_view(builder):
    x = builder.convolution(0, 8)
    turned = builder.host(x, "RESHAPE", "reshape", (1, 4, 9, 8), shape=(1, 4, 9, 8))
    builder.convolution(turned, 8)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert lists(graph) == [([], [("CONV_2D",), ("CONV_2D",)])]
    view = graph.maps[graph.layers[1].x]
    assert view.size == (4, 9, 8) and view.view.whole == graph.layers[0].y
    assert graph.maps[graph.layers[0].y].linear


def test_padding_of_a_product_of_the_host(builder):
    x = builder.convolution(builder.pad(builder.convolution(0, 8), (1, 0, 2, 1)), 4)
    builder.on_host()
    builder.dense(x, 3)
    graph = divide(builder.graph(), "tflite", 8, 8)
    [(operators, _)], _ = lists(graph)[1]
    assert operators == ("PAD", "CONV_2D")


def changed(graph, **fields):
    """The graph, with other fields of its last node."""
    return dataclasses.replace(
        graph, nodes=(*graph.nodes[:-1], dataclasses.replace(graph.nodes[-1], **fields))
    )


@pytest.mark.parametrize("fields, reason", [
    (dict(requantization=None), "its results must be of 8 bits"),
    (dict(w_zero=np.array([200])), "weights minus their zero points must be in -255..255, not in"),
])
def test_products_of_the_host(fields, reason):
    graph = divide(changed(chain(np.random.default_rng(1)), **fields), "tflite", 8, 8)
    assert graph.after[0].placement.reason.startswith(reason)
    assert graph.after[0].macs > 0


@pytest.mark.parametrize("size, options, reason", [
    ((1, 300), dict(kernel=(1, 300)), "kernel must be at most 255 x 255, not 1 x 300"),
    ((300, 1), dict(kernel=(300, 1)), "kernel must be at most 255 x 255, not 300 x 1"),
    ((1, 600), dict(kernel=(1, 2), dilation=(1, 256)),
     "dilation must be at most 255 x 255, not 1 x 256"),
    ((1, 66000), dict(kernel=(1, 1)), "input must be at most 65535 x 65535, not 1 x 66000"),
])
def test_windows_whose_numbers_have_too_many_bits(size, options, reason):
    """The host computes the operator, and the core the rest."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, *size, 3))
    x = builder.convolution(0, 2, padding=(0, 0, 0, 0), **options)
    builder.dense(x, 3)
    graph = divide(builder.graph(), "tflite", 8, 8)
    [step] = [step for segment in graph.segments for step in segment.before]
    assert (step.operators, step.placement.reason) == (("CONV_2D",), f"its {reason}")
    assert [layer.operators for layer in graph.layers] == [("FULLY_CONNECTED",)]


def test_a_stride_with_too_many_bits():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 1, 600, 3))
    x = builder.convolution(0, 8, kernel=(1, 1), padding=(0, 0, 0, 0))
    builder.convolution(x, 8, kernel=(1, 1), stride=(1, 256), padding=(0, 0, 0, 0))
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert graph.after[0].placement.reason == "its stride must be at most 255 x 255, not 1 x 256"


def test_blocks_of_pixels_make_a_large_kernel_fit():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 1, 302, 1))
    builder.convolution(0, 8, kernel=(1, 300), stride=(1, 2), padding=(0, 0, 0, 0))
    [layer] = divide(builder.graph(), "tflite", 8, 8).layers
    assert layer.window.kernel == (1, 150)


def test_products_of_two_activations(builder):
    x = builder.dense(builder.convolution(0, 8), 8)
    node = pair(builder.rng, x, x, builder.tensors, position=2)
    builder.nodes.append(dataclasses.replace(node, b_transposed=True))
    graph = divide(builder.graph(), "tflite", 8, 8, batch=2)
    [step] = graph.after
    assert step.placement.reason == (
        "its second operand is computed, and batch must be 1: a list with several inferences loads"
        " the same weights for all"
    )
    assert (step.macs, step.operands) == (8, (x, x))
    whole = divide(builder.graph(), "tflite", 8, 8)
    assert not whole.after and whole.layers[-1].macs == 8


@pytest.mark.parametrize("mode, runtime, suffix, source, other", [
    ("tflite", "TensorFlow Lite", "tflite", "onnx", "onnx"),
    ("single", "TensorFlow Lite", "tflite", "onnx", "onnx"),
    ("onnx", "onnxruntime", "onnx", "tflite", "tflite"),
])
def test_refuses_other_numerics(mode, runtime, suffix, source, other):
    graph = dataclasses.replace(chain(np.random.default_rng(1)), source=source)
    message = (
        f"net: a network core with requantize = '{mode}' has the rounding of {runtime}, and the"
        f" network must be a .{suffix} file, not .{source}; a network core with requantize ="
        f" '{other}' computes it"
    )
    with rejects(KindError, message):
        divide(graph, mode, 8, 8)


def test_networks_without_layers(builder):
    builder.host(0, "SOFTMAX", "tflite.softmax", (1, 6, 6, 3), **SOFTMAX)
    graph = divide(builder.graph(), "tflite", 8, 8)
    assert graph.segments == () and [step.operators for step in graph.after] == [("SOFTMAX",)]


def test_a_reshape_of_an_input_is_computed_only_for_the_host(builder):
    """A layer reads the input as it lies; SOFTMAX reads the reshaped values."""
    flat = builder.host(0, "RESHAPE", "reshape", (6, 18), shape=(6, 18))
    again = builder.host(flat, "RESHAPE", "reshape", (1, 108), shape=(1, 108))
    y = builder.dense(again, 4)
    graph = divide(builder.graph(), "tflite", 8, 8)
    [segment] = graph.segments
    assert graph.host == () and [form.tensor for form in graph.maps[:1]] == [0]
    assert [(node.operator, *places) for node, *places in segment.renamed] == [
        ("RESHAPE", flat, None), ("RESHAPE", again, None)
    ]
    builder.softmax(flat)
    graph = divide(builder.graph(y, len(builder.tensors) - 1), "tflite", 8, 8)
    assert [step.operators for step in graph.host] == [("RESHAPE",), ("SOFTMAX",)]
    [segment] = graph.segments
    assert [n for _, n, _ in segment.renamed] == [again]
