"""The digits network in TFLite Micro: every layer equals golden, byte for byte."""

import numpy as np
import pytest

from tools.tflite_writer import fully_connected_file
from weft.demo import Network
from weft.golden import add_bias, matmul, requantize
from weft.quantize import tflite_scale

NONE, RELU = 0, 1  # fused activation functions


@pytest.fixture(scope="module")
def network():
    return Network.load()


@pytest.fixture(scope="module")
def inputs(network):
    """All test images, and inputs beyond: every byte value at every position."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-128, 127, (500, network.layers[0].k), np.int8, endpoint=True)
    assert all(len(np.unique(column)) > 200 for column in rows.T)
    return np.concatenate([network.encode(network.images), rows])


def golden(layer, x):
    """Run one layer on ``x``."""
    acc = add_bias(matmul(x, layer.weights.T, a_zero_point=layer.x_zero_point), layer.bias)
    return requantize(
        acc, layer.multiplier, layer.shift, mode="tflite", zero_point=layer.y_zero_point,
        low=layer.low, high=layer.high,
    )


def in_tflite(tflm, network, count, inputs):
    """Run the first ``count`` layers on ``inputs``; TFLite Micro derives multipliers and clamps."""
    activations = [RELU] * (len(network.layers) - 1) + [NONE]
    run = tflm(fully_connected_file(network.layers[:count], activations[:count]))
    return np.array([run(x) for x in inputs])


def test_every_layer_equals_tflite_micro(tflm, network, inputs):
    x = inputs
    for count, layer in enumerate(network.layers, 1):
        x = golden(layer, x)
        y = in_tflite(tflm, network, count, inputs)
        assert y.dtype == x.dtype == np.int8
        assert y.shape == x.shape == (len(network.images) + 500, layer.n)
        assert np.array_equal(y, x)
        assert len(np.unique(x)) > 100


def test_each_layer_equals_tflite_micro(tflm, network):
    """Each layer with its own random inputs, which the layer before may never produce."""
    rng = np.random.default_rng(2)
    for layer, activation in zip(network.layers, (RELU, RELU, NONE), strict=True):
        x = rng.integers(-128, 127, (500, layer.k), np.int8, endpoint=True)
        run = tflm(fully_connected_file([layer], [activation]))
        assert np.array_equal([run(row) for row in x], golden(layer, x))


def test_tflite_micro_has_the_recorded_accuracy(tflm, network, inputs):
    y = in_tflite(tflm, network, len(network.layers), inputs[: len(network.images)])
    assert network.accuracy(y.argmax(1)) == network.int8_accuracy


def test_multipliers_match_the_scales(network):
    for layer in network.layers:
        multiplier, shift = tflite_scale(layer.x_scale, layer.w_scale, layer.y_scale)
        assert np.array_equal(layer.multiplier, multiplier)
        assert np.array_equal(layer.shift, shift)
