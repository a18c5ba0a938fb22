"""Operators that are a function of one byte become one table, with the bytes of their kernels."""

import numpy as np
import pytest
from graphs import tensor
from lowered_operators import check_whole
from network_cores import LARGE, SMALL
from operand_networks import Operands
from products import integers

from weft.models.ir import Host
from weft.models.network_core.division import divide
from weft.models.network_core.operators.functions import with_functions


def layers(network, *outputs):
    """The operators of the layers."""
    graph = divide(network.graph(*outputs), "tflite", 8, 8)
    assert not graph.host
    return [layer.operators for layer in graph.layers]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("kernel", [
    "tflite.add", "tflite.sub", "tflite.mul", "tflite.prelu", "maximum", "minimum",
])
def test_constants_of_one_value(kernel, dtype):
    """They cost no layer behind the one that computes the operand."""
    network = Operands(1, (1, 4, 5, 6), dtype)
    x = network.convolution(0, 6)
    constant = network.constant(np.full((1, 6), 7, dtype), zero=3)
    inputs = (x, constant) if kernel == "tflite.prelu" else (constant, x)
    y = network.apply(kernel, *inputs)
    z = network.apply(kernel, 0, network.values())
    [own, added, *_] = layers(network, y, z)
    assert own[0] == "CONV_2D" and len(own) == 2 and len(added) == 1
    check_whole(network, y, z, config=SMALL)


def test_hard_swish_of_its_parts():
    """``x * relu6(x + 3) / 6`` is one table behind the layer of x."""
    network = Operands(2, (1, 4, 5, 6))
    x = network.convolution(0, 6)
    gate = network.table(network.total(x, network.values(1)))
    y = network.product(x, network.product(gate, network.values(1)))
    assert layers(network, y) == [("CONV_2D", "ADD+LOGISTIC+MUL+MUL")]
    program = check_whole(network, y, config=LARGE)
    assert program.layers[0].position == (0, 1, 2, 3, 4)


def test_the_result_of_a_part_is_needed():
    network = Operands(3, (1, 4, 5, 6))
    x = network.convolution(0, 6)
    gate = network.table(x)
    y = network.product(x, gate)
    assert layers(network, gate, y) == [("CONV_2D",), ("LOGISTIC",), ("MUL",)]
    check_whole(network, gate, y, config=LARGE)


def test_the_nearest_tensor_that_is_needed():
    """The table stays behind the layer of x."""
    network = Operands(3, (1, 4, 5, 6))
    gate = network.table(network.convolution(0, 6))
    y = network.product(gate, gate)
    assert layers(network, gate, y) == [("CONV_2D", "LOGISTIC"), ("MUL",)]
    check_whole(network, gate, y, config=LARGE)


def test_float32_between_bytes():
    network = Operands(4, (1, 4, 5, 6))

    def float32(kernel, *inputs, **attributes):
        network.tensors.append(tensor((1, 4, 5, 6), np.float32))
        number = len(network.tensors) - 1
        place = len(network.nodes)
        network.nodes.append(Host(
            operator=kernel, name=f"n{place}", position=(place,), inputs=inputs, outputs=(number,),
            kernel=kernel, reason="", attributes=attributes,
        ))
        return number

    x = network.convolution(0, 6)
    value = float32("tflite.dequantize", x, scale=0.1, zero=4)
    network.tensors.append(tensor((), np.float32, data=np.array(1.5, np.float32)))
    total = float32(
        "tflite.plain_mul", value, len(network.tensors) - 1, low=None, high=None
    )
    square = float32("tflite.square", total)
    network.nodes.append(Host(
        operator="QUANTIZE", name="q", position=(4,), inputs=(square,), outputs=(network._output(
            (1, 4, 5, 6)),), kernel="tflite.quantize", reason="",
        attributes=dict(scale=0.9, zero=-3, dtype="int8"),
    ))
    y = len(network.tensors) - 1
    [operators] = layers(network, y)
    assert operators[0] == "CONV_2D" and len(operators) == 2
    check_whole(network, y, config=LARGE)


def test_a_graph_without_functions_stays():
    network = Operands(5, (1, 4, 5, 6))
    x = network.table(network.convolution(0, 6))
    y = network.total(x, network.input((1, 4, 5, 6)))
    graph = network.graph(y)
    assert with_functions(graph).nodes == graph.nodes


def test_channels_are_no_function():
    network = Operands(6, (1, 4, 5, 6))
    y = network.product(0, network.constant(integers(network.rng, np.int8, 6)))
    assert with_functions(network.graph(y)).nodes[0].kernel == "tflite.mul"
