"""Networks without dead channels: no byte of a result changes, by formulas and on both cores."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import convolution, fully_connected, graph_of, tensor
from network_core_networks import NetworkBuilder, random_divided_network, random_network
from network_cores import LARGE, SMALL
from products import integers
from tiers import quick

from weft.config import Config
from weft.models.compiler import compile_graph
from weft.models.dead_channels import leave_out_channels
from weft.models.ir import Gemm, Host, State
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of


def sparse(rng, graph):
    """A network with weights of 0: whole columns and rows, and some biases of 0."""
    def node(found):
        if not isinstance(found, Gemm):
            return found
        groups, k, n = found.weights.shape
        weights, bias = found.weights.copy(), found.bias.copy()
        w_zero = found.w_zero
        if rng.random() < 0.3:
            w_zero = w_zero[0] + rng.integers(-3, 4, groups * n)
        zero = np.broadcast_to(w_zero, groups * n).reshape(groups, 1, n)
        columns = rng.random((groups, n)) < rng.choice([0, 0.3, 0.6])
        weights = np.where(columns[:, None], zero, weights)
        bias[columns.reshape(-1) & (rng.random(groups * n) < 0.6)] = 0
        size = found.window and k // int(np.prod(found.window.kernel)) or k
        rows = rng.random(size) < rng.choice([0, 0.3, 0.6])
        weights[:, np.tile(rows, k // size)] = zero
        return dataclasses.replace(
            found, weights=weights.astype(np.int8), w_zero=w_zero, bias=bias
        )

    return dataclasses.replace(graph, nodes=tuple(map(node, graph.nodes)))


def random_sparse_network(seed):
    rng = np.random.default_rng(seed)
    dtype = np.uint8 if seed % 3 == 2 else np.int8
    make = random_network if seed % 2 else random_divided_network
    graph = sparse(rng, make(rng, dtype))
    return graph, integers(rng, dtype, *graph.tensors[0].shape)


def left_out(graph, multiple=1, mode="tflite"):
    """What is left out, after a check that all outputs are equal."""
    reduced, found = leave_out_channels(graph, mode, multiple)
    x = integers(np.random.default_rng(9), graph.tensors[0].dtype, *graph.tensors[0].shape)
    values, others = (run_graph(each, [x], mode=mode) for each in (graph, reduced))
    for number in graph.outputs:
        np.testing.assert_array_equal(others[number], values[number])
    return found


@pytest.mark.parametrize("seeds", quick(3, [
    range(first, first + 20) for first in range(0, 160, 20)
]))
def test_results_are_equal_by_the_formulas(seeds):
    founds = [left_out(random_sparse_network(seed)[0], multiple=1 + seed % 4) for seed in seeds]
    assert sum(found.channels > 0 for found in founds) > 10
    assert all((found.channels > 0) == (len(found.tensors) > 0) for found in founds)


@pytest.mark.parametrize("seed", quick(4, [*range(12)]))
def test_results_are_equal_on_the_cores(seed):
    graph, x = random_sparse_network(seed)
    values = run_graph(graph, [x])
    target = target_of(LARGE if seed % 2 else SMALL)
    config = Config(rows=4, cols=4, requantize="tflite")
    pairs = [
        (compile_network_core(graph, target), compile_network_core(
            graph, target, activations=True
        )),
        (compile_graph(graph, config), compile_graph(graph, config, fuse=False)),
    ]
    for program in (program for pair in pairs for program in pair):
        with program.open("golden") as session:
            y = session(x)
        for number, found in zip(graph.outputs, y if isinstance(y, list) else [y], strict=True):
            np.testing.assert_array_equal(found, values[number])
    for program, full in pairs:
        assert full.left_out is None
        assert sum(step.left_out for step in program.steps) == program.left_out.macs
        assert macs_of(program) == macs_of(full)


def macs_of(program):
    """The MAC of the file."""
    return sum(step.macs + step.left_out for step in program.steps)


def network(value, padding, between=None):
    """Two convolutions; the last channel of the first one is constant."""
    builder = NetworkBuilder(np.random.default_rng(3), (1, 6, 6, 4))
    x = builder.convolution(0, 6)
    gemm = builder.nodes[-1]
    weights, bias = gemm.weights.copy(), gemm.bias.copy()
    weights[:, :, -1], bias[-1] = 0, value
    builder.nodes[-1] = dataclasses.replace(gemm, weights=weights, bias=bias)
    x = between(builder, x) if between else x
    return builder.graph(builder.convolution(x, 5, padding=padding))


INSIDE, BORDER = (0, 0, 0, 0), (1, 1, 1, 1)


@pytest.mark.parametrize("value, padding, channels", [
    (0, BORDER, 1),  # the zero point
    (-50000, INSIDE, 1),  # any value
    (-50000, BORDER, 0),  # another one at the border
    (-50000, (1, 0, 0, 0), 0),
    (-50000, (0, 0, 0, 1), 0),
    (-50000, (-1, -1, -1, -1), 1),  # the window reads less than the map
    (-50000, (0, 1, -1, 0), 0),
])
def test_a_constant_channel_goes_to_the_bias_unless_the_border_differs(value, padding, channels):
    assert left_out(network(value, padding)).channels == channels


@pytest.mark.parametrize("between, channels", [
    (lambda net, x: net.convolution(x, 1, groups=6), 2),
    (lambda net, x: net.convolution(x, 2, groups=6), 3),
    (lambda net, x: net.convolution(x, 2, groups=3), 0),  # its group has another channel
    (lambda net, x: net.table(x), 1),
    (lambda net, x: net.convert(x), 1),
    (lambda net, x: net.pool(x, 2, 1), 1),
    (lambda net, x: net.host(
        x, "MAX_POOL_2D", "tflite.max_pool", net.tensors[x].shape, kernel_size=(3, 3),
        stride=(1, 1), padding=(1, 1), output=net.tensors[x].shape[1:3], low=-128, high=127,
    ), 1),
    (lambda net, x: net.add(x, x), 1),
    (lambda net, x: net.add(x, net.convolution(x, 6, kernel=(1, 1), padding=INSIDE)), 0),
    (lambda net, x: net.concatenation(x, net.convolution(x, 6)), 0),
])
def test_what_is_between_has_the_channels_of_its_input(between, channels):
    assert left_out(network(0, INSIDE, between)).channels == channels


@pytest.mark.parametrize("outputs, channels", [((), 2), ((1,), 1)])
def test_dead_channels_of_a_chain(outputs, channels):
    """What only dead channels read is dead; outputs of the network keep all channels."""
    builder = NetworkBuilder(np.random.default_rng(4), (1, 5, 5, 3))
    x = builder.convolution(builder.convolution(builder.convolution(0, 4), 4), 4)
    for place, column, row in ((1, slice(3), 3), (2, slice(None), 3)):
        gemm = builder.nodes[place]
        weights = gemm.weights.reshape(9, 4, 4).copy()
        weights[:, row, column] = 0  # channel 3 is read by the dead one only, or by none
        builder.nodes[place] = dataclasses.replace(gemm, weights=weights.reshape(1, 36, 4))
    graph = builder.graph(*outputs, x) if outputs else builder.graph(x)
    found = left_out(graph)
    assert found.channels == channels
    assert str(found).startswith(f"left out: {channels} channels of products, which are constant")


def test_channels_of_nchw():
    rng = np.random.default_rng(8)
    tensors = [tensor((1, 3, 5, 6), zero=4)]
    nodes = [convolution(rng, 0, tensors, 4, layout="NCHW")]
    nodes.append(convolution(rng, 1, tensors, 4, groups=1, layout="NCHW", position=1))
    tensors.append(tensor((1, 4 * 5 * 6)))
    nodes.append(Host(
        operator="Reshape", name="flat", position=(2,), inputs=(2,), outputs=(3,),
        kernel="reshape", attributes={"shape": (1, 120)}, reason="it only moves values",
    ))
    nodes.append(fully_connected(rng, 3, tensors, 7, position=3))
    nodes[0].weights[:, :, 1], nodes[0].bias[1] = 0, 0  # constant
    nodes[3].weights[:, 60:90] = 0  # channel 2 is dead
    graph = graph_of(nodes, tensors, source="onnx")
    assert left_out(graph, mode="onnx").channels == 2


def test_a_flat_map_has_its_channels():
    builder = NetworkBuilder(np.random.default_rng(5), (1, 4, 4, 3))
    x = builder.convolution(0, 4)
    flat = builder.host(x, "RESHAPE", "reshape", (1, 64), shape=(1, 64))
    y = builder.dense(flat, 5)
    gemm = builder.nodes[-1]
    weights = gemm.weights.copy()
    weights[:, 2::4] = 0
    builder.nodes[-1] = dataclasses.replace(gemm, weights=weights)
    assert left_out(builder.graph(y)).channels == 1


def test_an_average_keeps_whole_groups():
    builder = NetworkBuilder(np.random.default_rng(6), (1, 4, 4, 3))
    y = builder.dense(builder.mean(builder.convolution(0, 8)), 5)
    gemm = builder.nodes[-1]
    weights = gemm.weights.copy()
    weights[:, 2:7] = 0
    builder.nodes[-1] = dataclasses.replace(gemm, weights=weights)
    assert [left_out(builder.graph(y), multiple).channels for multiple in (1, 4, 3)] == [5, 4, 5]


def test_a_bias_that_could_overflow_stays():
    graph = network(-50000, INSIDE)
    gemm = graph.nodes[-1]
    large = dataclasses.replace(gemm, bias=np.full(5, (1 << 30) - 1))
    graph = dataclasses.replace(graph, nodes=(*graph.nodes[:-1], large))
    assert left_out(graph).channels == 0


def test_variables_keep_all_channels():
    graph = network(0, BORDER)
    assert left_out(graph).channels == 1
    state = State(
        name="s", initial=np.zeros(graph.tensors[1].shape, np.int8), before=0, after=1,
        position=(0,),
    )
    assert left_out(dataclasses.replace(graph, states=(state,))).channels == 0


def test_activations_lack_the_outputs_without_all_channels():
    graph = network(0, BORDER)
    config = Config(rows=4, cols=4, requantize="tflite")
    x = integers(np.random.default_rng(1), np.int8, 1, 6, 6, 4)
    names = []
    for fuse in (True, False):
        with compile_graph(graph, config, fuse=fuse).open("golden") as session:
            names.append(sorted(session(x, activations=True)[1]))
    assert names == [["out1"], ["out0", "out1"]]
