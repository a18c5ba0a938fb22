"""Layers with weights as C, on models of cores with every kind of bus."""

import dataclasses

import numpy as np
import pytest
from c_network import LoadedNetwork
from graph_runner import run_graph
from graphs import convolution, fully_connected, graph_of, pair, table_of, tensor
from products import integers
from rejects import rejects

from weft.config import Config
from weft.ip import Ip
from weft.models.c_code import c_files
from weft.models.c_code.generator import public_name
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.ir import Window

SMALL = Config(rows=3, cols=4, depth=2, lanes=2, a_words=128, b_words=256, b_zero_point="column")


def network(rng):
    """Groups that do not fill the last product, a table in the core, a batch of 2, blocks of A."""
    tensors = [tensor((2, 12, 12, 3), zero=3)]
    nodes = [
        convolution(rng, 0, tensors, 6, position=0),
        convolution(rng, 1, tensors, 1, groups=6, stride=(2, 1), position=1, w_zero=2),
        table_of(rng, 2, tensors, position=2),
        convolution(rng, 3, tensors, 5, groups=2, position=3, w_zero=-3),
    ]
    dilated = Window((3, 3), (1, 1), (1, 2), (1, 1, 2, 2), (12, 12), (12, 12))
    nodes[0] = dataclasses.replace(nodes[0], window=dilated)
    # A transposed convolution: a map that is spread, and cropped at the left.
    spread = convolution(rng, 4, tensors, 2, position=4)
    window = Window((3, 2), (1, 1), (1, 2), (2, 1, -1, 0), (6, 12), (12, 20), (2, 2))
    tensors[-1] = tensor((2, 12, 20, 2), zero=-4)
    spread = dataclasses.replace(
        spread, window=window, weights=integers(rng, np.int8, 1, 60, 2), operator="TRANSPOSE_CONV"
    )
    dense = fully_connected(rng, 5, tensors, 7, position=5)
    dense = dataclasses.replace(dense, weights=integers(rng, np.int8, 1, 480, 7))
    tensors[-1] = tensor((2, 7))
    return graph_of([*nodes, spread, dense], tensors)


def check(folder, graph, config, bus, prefix="weft"):
    program = compile_graph(graph, config)
    ip = Ip(config=config, bus=bus, prefix=prefix)
    name = public_name(graph.name, prefix)
    loaded = LoadedNetwork(folder, ip, name, c_files(graph, program, prefix))
    rng = np.random.default_rng(4)
    for _ in range(2):
        x = integers(rng, np.int8, *graph.tensors[0].shape)
        expected = run_graph(graph, [x])[graph.outputs[0]]
        error, y = loaded(x, expected.size)
        assert error == 0
        np.testing.assert_array_equal(y, expected.ravel())
    assert loaded.driver.device.access_errors == 0
    return program


@pytest.mark.parametrize("bus", ["axi", "dma"])
def test_results_equal_the_formula(tmp_path, bus):
    graph = network(np.random.default_rng(2))
    program = check(tmp_path, graph, SMALL, bus)
    assert program.steps[1].operators == ("DEPTHWISE_CONV_2D", "LOGISTIC")


@pytest.mark.slow
def test_weights_that_do_not_fit_are_sent_with_each_block(tmp_path):
    rng = np.random.default_rng(2)
    tensors = [tensor((1, 50, 200), zero=-3)]
    graph = graph_of([fully_connected(rng, 0, tensors, 20)], tensors)
    config = Config(rows=2, cols=4, a_words=64, b_words=64)
    check(tmp_path, graph, config, "wishbone", prefix="mm")
    data = c_files(graph, compile_graph(graph, config))["net_data.h"]
    assert b"50, 20, 40, 200, NULL, parts0" in data  # M of 50 in blocks of 40 rows


def rejected(config=SMALL, layer=fully_connected, shape=(1, 8), **options):
    rng = np.random.default_rng(2)
    tensors = [tensor(shape)]
    graph = graph_of([layer(rng, 0, tensors, 4, **options)], tensors)
    return graph, compile_graph(graph, config)


@pytest.mark.parametrize("made, reason", [
    (rejected(dataclasses.replace(SMALL, b_zero_point="none"), w_zero=3),
     ("(FULLY_CONNECTED fc0): no C code: weights have zero points: the host corrects raw sums"
      " (b_zero_point=column changes this)")),
    (rejected(raw=True), "(FULLY_CONNECTED fc0): no C code: the results are sums"),
    (rejected(layer=convolution, shape=(1, 4, 5, 6), layout="NCHW"),
     "(CONV_2D conv0): no C code: the layout of x must be NHWC, not NCHW"),
])
def test_rejects_a_product_without_c_code(made, reason):
    with rejects(ModelError, f"net: operator 0 {reason}"):
        c_files(*made)


def test_rejects_two_activations():
    tensors = [tensor((4, 4))]
    graph = graph_of([pair(np.random.default_rng(2), 0, 0, tensors)], tensors)
    with rejects(ModelError, (
        "net: operator 0 (BATCH_MATMUL pair0): no C code: both operands are activations"
    )):
        c_files(graph, compile_graph(graph, SMALL))
