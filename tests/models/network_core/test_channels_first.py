"""Maps of ONNX, whose channels are first: what the host writes and reads, and flattened maps."""

import numpy as np
import pytest
from network_cores import network_core_config
from onnx_models import Builder, require, run_runtime
from onnx_networks import random_inputs

import weft
from weft.models.network_core.layers import InputForm

CORE = network_core_config(2, 4, 4, 4, requantize="onnx")
SCALE, ZERO = np.float32(0.03), np.int8(-7)


@pytest.fixture(autouse=True)
def _packages():
    require("onnx", "onnxruntime")


def conv(b, x, channels, size, kernel=(1, 1), **attributes):
    """A QLinearConv of int8."""
    weights = b.rng.integers(-127, 128, (channels, size, *kernel)).astype(np.int8)
    return b.node(
        "QLinearConv", x, SCALE, ZERO, weights, np.float32(0.004), np.int8(0), SCALE, ZERO,
        **attributes,
    )


def gemm(b, x, k, n=5):
    w = b.rng.integers(-127, 128, (k, n)).astype(np.int8)
    return b.node(
        "QLinearMatMul", x, SCALE, ZERO, w, np.float32(0.004), np.int8(0), SCALE, ZERO
    )


def check(b, *results, lists=1, host=()):
    """The program, whose outputs equal onnxruntime's."""
    network = weft.load(b.bytes(*results, dtype=np.int8), "net.onnx")
    program = network.compile(CORE)
    program.check()
    assert len(program.segments) == lists
    assert {name for step in program.host for name in step.operators} == {*host}
    x = random_inputs(program, count=1)
    found = program.open("golden")(x)
    found = found if isinstance(found, list | tuple) else [found]
    for y, wanted in zip(found, run_runtime(network.data, [x]), strict=True):
        np.testing.assert_array_equal(y, wanted)
    return program


def test_blocks_of_pixels_from_planes():
    values = np.arange(2 * 3 * 5).astype(np.int8)
    form = InputForm(0, 3, 5, 2, -1, (2, 2), (1, 0), channels_first=True)
    pixels = values.reshape(2, 3, 5).transpose(1, 2, 0)
    plain = InputForm(0, 3, 5, 2, -1, (2, 2), (1, 0))
    np.testing.assert_array_equal(form.arrange(values), plain.arrange(pixels.ravel()))


def test_a_map_is_an_output():
    b = Builder()
    check(b, conv(b, b.input("x", [1, 3, 6, 5], np.int8), 6, 3, (3, 2), strides=[2, 1]))


def test_a_flattened_map_is_an_output_and_an_operand():
    b = Builder()
    y = conv(b, b.input("x", [1, 3, 4, 3], np.int8), 4, 3)
    flat = b.node("Reshape", y, np.int64([1, 48]))
    check(b, flat, gemm(b, flat, 48))


def test_a_flattened_input():
    """The input is no map of the core: the weights keep their order."""
    b = Builder()
    flat = b.node("Flatten", b.input("x", [1, 3, 4, 3], np.int8))
    check(b, gemm(b, flat, 36))


def test_rows_of_a_map_that_are_no_pixels():
    """[1, C, H * W] as rows of C: the core has pixels, so the host reads and writes the values."""
    b = Builder()
    y = conv(b, b.input("x", [1, 3, 4, 3], np.int8), 4, 3)
    check(b, gemm(b, b.node("Reshape", y, np.int64([1, 4, 12])), 12), lists=2)


def test_a_row_becomes_a_map():
    b = Builder()
    y = gemm(b, b.input("x", [1, 8], np.int8), 8, n=24)
    check(b, conv(b, b.node("Reshape", y, np.int64([1, 4, 3, 2])), 4, 4))


def test_rows_become_channels():
    """The rows of a product are channels of the map: the host computes it."""
    b = Builder()
    y = gemm(b, b.input("x", [1, 4, 3, 6], np.int8), 6, n=2)
    program = check(b, conv(b, y, 4, 4, (2, 2)), host=["QLinearMatMul"])
    assert program.host[0].placement.reason == (
        "its rows must be one row, whose columns are channels of a map"
    )


def test_channels_are_joined():
    b = Builder()
    x = b.input("x", [1, 3, 4, 3], np.int8)
    y = b.node("Concat", conv(b, x, 4, 3), conv(b, x, 8, 3), axis=1)
    check(b, y, conv(b, y, 4, 12, (2, 2)))


@pytest.mark.parametrize("axis", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("channels", [4, 3])
def test_maps_are_joined_along_each_axis(axis, channels):
    b = Builder()
    x = b.input("x", [1, 3, 4, 3], np.int8)
    y = b.node("Concat", conv(b, x, channels, 3), conv(b, x, channels, 3), axis=axis)
    check(b, y, conv(b, y, 4, channels * (1 + (axis == 1))))


@pytest.mark.parametrize("pads", [[0, 0, 1, 2, 0, 0, 3, 0], [0, 1, 0, 0, 0, 4, 0, 0]])
def test_a_border_of_any_axis(pads):
    b = Builder()
    x = conv(b, b.input("x", [1, 3, 4, 3], np.int8), 5, 3)
    y = b.node("Pad", x, np.int64(pads), np.int8(9))
    check(b, y, conv(b, y, 4, 5 + pads[1] + pads[5]))


@pytest.mark.parametrize("shape", [[1, 12, 3, 2], [1, 2, 6, 6], [1, 1, 8, 9], [1, 72, 1, 1]])
def test_a_reshape_to_other_channels(shape):
    """A value has the same place in both tensors, whose maps have the channels last."""
    b = Builder()
    x = conv(b, b.input("x", [1, 3, 3, 6], np.int8), 4, 3)
    y = b.node("Reshape", x, np.int64(shape))
    check(b, conv(b, y, 4, shape[1]))


def test_a_convolution_of_one_axis():
    b = Builder()
    w = b.rng.integers(-127, 128, (4, 3, 3)).astype(np.int8)
    y = b.node(
        "QLinearConv", b.input("x", [1, 3, 9], np.int8), SCALE, ZERO, w, np.float32(0.004),
        np.int8(0), SCALE, ZERO, pads=[1, 1],
    )
    y = b.node(
        "QLinearLeakyRelu", y, SCALE, ZERO, SCALE, ZERO, domain="com.microsoft", alpha=0.1
    )
    w = b.rng.integers(-127, 128, (6, 4, 2)).astype(np.int8)
    y = b.node("QLinearConv", y, SCALE, ZERO, w, np.float32(0.004), np.int8(0), SCALE, ZERO)
    check(b, y)


def test_maxima():
    b = Builder()
    y = conv(b, b.input("x", [1, 3, 6, 5], np.int8), 4, 3)
    y = b.node("MaxPool", y, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    check(b, y, conv(b, y, 4, 4, (2, 2)))


def test_a_table_of_the_input():
    b = Builder()
    x = b.node(
        "QLinearLeakyRelu", b.input("x", [1, 3, 4, 5], np.int8), SCALE, ZERO, SCALE, ZERO,
        domain="com.microsoft", alpha=0.1,
    )
    check(b, conv(b, x, 4, 3, (2, 3)))


def test_a_pad_before_a_convolution():
    b = Builder()
    x = conv(b, b.input("x", [1, 3, 4, 3], np.int8), 4, 3)
    y = b.node("Pad", x, np.int64([0, 0, 1, 2, 0, 0, 1, 0]), ZERO)
    check(b, conv(b, y, 4, 4, (3, 2)))
