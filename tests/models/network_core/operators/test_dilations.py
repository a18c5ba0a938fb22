"""A convolution of a batch of every n-th pixel is one convolution with a dilation."""

import numpy as np
import pytest
from graph_runner import run_graph
from network_cores import LARGE
from tflite_files import T, build

import weft


def file_of(operator="DEPTHWISE_CONV_2D", *, padding=1, pads=((2, 3), (4, 4)), cut=((0, 1), (0, 0)),
            also=()):
    """x [1, 11, 8, 4] in blocks of 2 x 4, a kernel of 3 x 2, and back."""
    rng = np.random.default_rng(4)
    inner = 8, 4
    size = inner if padding == 0 else (inner[0] - 2, inner[1] - 1)
    end = [n * b - sum(pair) for n, b, pair in zip(size, (2, 4), cut, strict=True)]
    shape = (1, 3, 2, 4) if operator == "DEPTHWISE_CONV_2D" else (4, 3, 2, 4)
    tensors = {
        "x": T((1, 11, 8, 4), scale=0.1, zero=-3), "y": T((1, *end, 4), scale=0.3, zero=1),
        "b": T(data=np.int32([2, 4])), "p": T(data=np.int32(pads)), "c": T(data=np.int32(cut)),
        "s": T((8, *inner, 4), scale=0.1, zero=-3), "m": T((8, *size, 4), scale=0.3, zero=1),
        "w": T(data=rng.integers(-127, 128, shape).astype(np.int8), scale=0.01),
        "a": T(data=rng.integers(-900, 900, 4).astype(np.int32), scale=0.001),
    }
    options = dict(padding=padding, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    kind = "Conv2DOptions"
    if operator == "DEPTHWISE_CONV_2D":
        kind, options = "DepthwiseConv2DOptions", options | {"depthMultiplier": 1}
    return build(tensors, [
        ("SPACE_TO_BATCH_ND", ["x", "b", "p"], ["s"], None),
        (operator, ["s", "w", "a"], ["m"], (kind, options)),
        ("BATCH_TO_SPACE_ND", ["m", "b", "c"], ["y"], None),
    ], ["x"], ["y", *also])


def check_equal(data):
    """Return the program; its results are those of the kernels."""
    program = weft.load(data, "net").compile(LARGE)
    graph = weft.load(data, "net").graph
    shape = graph.tensors[graph.inputs[0]].shape
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    expected = run_graph(graph, [x])
    with program.open("golden") as session:
        found = session(x)
    found = found if isinstance(found, list) else [found]
    for value, number in zip(found, graph.outputs, strict=True):
        np.testing.assert_array_equal(value, expected[number])
    return program


@pytest.mark.parametrize("fields", [
    {}, {"operator": "CONV_2D"}, {"padding": 0},
    {"pads": ((5, 0), (3, 5)), "cut": ((1, 2), (3, 0))},
], ids=str)
def test_one_layer(fields):
    program = check_equal(file_of(**fields))
    [layer] = program.layers
    assert not program.host and layer.position == (0, 1, 2)
    assert layer.operators[0].startswith("SPACE_TO_BATCH_ND+")


def test_values_in_time():
    """TensorFlow writes a dilation of Conv1D with three axes, and with four ones inside."""
    rng = np.random.default_rng(4)
    tensors = {
        "x": T((1, 10, 4), scale=0.1, zero=-3), "y": T((1, 10, 5), scale=0.3, zero=1),
        "b": T(data=np.int32([3])), "p": T(data=np.int32([[6, 2]])),
        "c": T(data=np.int32([[0, 2]])), "s": T((3, 6, 4), scale=0.1, zero=-3),
        "e": T((3, 1, 6, 4), scale=0.1, zero=-3),
        "m": T((3, 1, 4, 5), scale=0.3, zero=1), "q": T((3, 4, 5), scale=0.3, zero=1),
        "w": T(data=rng.integers(-127, 128, (5, 1, 3, 4)).astype(np.int8), scale=0.01),
        "one": T(data=np.int32(1)),
    }
    options = dict(padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    data = build(tensors, [
        ("SPACE_TO_BATCH_ND", ["x", "b", "p"], ["s"], None),
        ("EXPAND_DIMS", ["s", "one"], ["e"], None),
        ("CONV_2D", ["e", "w", None], ["m"], ("Conv2DOptions", options)),
        ("SQUEEZE", ["m"], ["q"], ("SqueezeOptions", {"squeezeDims": [1]})),
        ("BATCH_TO_SPACE_ND", ["q", "b", "c"], ["y"], None),
    ], ["x"], ["y"])
    program = check_equal(data)
    assert not program.host and len(program.layers) == 1


def test_a_batch_that_is_an_output_stays_one():
    program = check_equal(file_of(also=["m"]))
    assert "SPACE_TO_BATCH_ND" in [step.operators[0] for step in program.host]
