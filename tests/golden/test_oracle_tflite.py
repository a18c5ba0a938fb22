"""The golden models against TFLite Micro, on generated models.

Where x is its zero point every product is 0 and the sum is the bias: so a fully connected layer of
one input sweeps the requantizer alone.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from products import integers
from tflite_files import T, build

from tools.tflite_writer import fully_connected_file
from weft.golden import activate, add_bias, matmul, requantize
from weft.quantize import (
    activation_table,
    hard_swish,
    leaky_relu,
    quantize_multiplier,
    sigmoid,
    tanh,
    tflite_scale,
)

ALL = np.arange(256, dtype=np.uint8).view(np.int8)  # every byte


def fully_connected(
    tflm, bias, x_scale, w_scale, y_scale, *,
    x=None, x_zero_point=0, w=None, y_zero_point=0, activation=0,
):
    """The results of a layer for rows ``x``; without ``x`` and ``w``, the results of its bias."""
    bias = np.asarray(bias, np.int32)
    w = np.ones((len(bias), 1), np.int8) if w is None else w
    x = np.full((1, w.shape[1]), x_zero_point, np.int8) if x is None else x
    layer = SimpleNamespace(
        weights=w, bias=bias, x_scale=x_scale, w_scale=w_scale, y_scale=y_scale,
        x_zero_point=x_zero_point, y_zero_point=y_zero_point,
    )
    run = tflm(fully_connected_file([layer], [activation]))
    return np.array([run(row) for row in x])


def test_tflite_sweep_per_channel(tflm, sums):
    """A million sums and scales: ties, ends of int32, left shifts that wrap, very small scales."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(128):
        x_scale, y_scale = np.float32(rng.uniform(0.5, 2, 2))
        w_scale = np.exp2(rng.uniform(-34, 28, 8192)).astype(np.float32)
        if rng.random() < 0.5:  # powers of two
            x_scale = y_scale = 1
            w_scale = np.exp2(rng.integers(-34, 30, 8192, endpoint=True)).astype(np.float32)
        multiplier, shift = tflite_scale(x_scale, w_scale, y_scale)
        seen |= set(shift[multiplier > 0].tolist())
        acc = sums(rng, w_scale * (np.float64(x_scale) / y_scale))
        zero_point = int(rng.integers(-128, 128))
        y = fully_connected(tflm, acc, x_scale, w_scale, y_scale, y_zero_point=zero_point)
        expected = requantize(acc, multiplier, shift, zero_point=zero_point)
        assert np.array_equal(y[0], expected)
    assert seen == set(range(-31, 32))


def test_tflite_per_tensor_computes_the_product_in_double(tflm):
    """60 triples of scales, with sums for which a product in float32 gives another result."""
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(300):
        scales = np.exp2(rng.uniform([-4, -24, -4], [4, -20, 4])).astype(np.float32)
        pairs = [tflite_scale(*scales), tflite_scale(*scales, product="float32")]
        edges = np.arange(-128, 127) + 0.5
        acc = np.unique(np.concatenate([
            np.rint(edges / (m * 2.0 ** (s - 31)))[:, None] + np.arange(-2, 3) for m, s in pairs
        ]))
        acc = acc[np.abs(acc) < 1 << 31].astype(np.int32)
        now, before = (requantize(acc, *pair) for pair in pairs)
        if found < 60 and not np.array_equal(now, before):
            found += 1
            assert np.array_equal(fully_connected(tflm, acc, *scales)[0], now), scales
    assert found == 60


@pytest.mark.parametrize("activation, top", [(0, None), (1, None), (3, 6)])  # none, ReLU, ReLU6
@pytest.mark.parametrize("per_channel", [False, True])
def test_tflite_layer(tflm, per_channel, activation, top):
    rng = np.random.default_rng([per_channel, activation])
    w, x = integers(rng, np.int8, 24, 100), integers(rng, np.int8, 50, 100)
    x_scale, w_scale, y_scale = np.float32([0.03, 0.0625, 5.5])
    if per_channel:
        w_scale = rng.uniform(0.01, 0.1, 24).astype(np.float32)
    bias = rng.integers(-50_000, 50_000, 24).astype(np.int32)
    x_zero_point, y_zero_point = -7, -90
    y = fully_connected(
        tflm, bias, x_scale, w_scale, y_scale, x=x, x_zero_point=x_zero_point, w=w,
        y_zero_point=y_zero_point, activation=activation,
    )
    acc = add_bias(matmul(x, w.T, a_zero_point=x_zero_point), bias)
    expected = requantize(
        acc, *tflite_scale(x_scale, w_scale, y_scale), zero_point=y_zero_point,
        low=y_zero_point if activation else -128,
        high=y_zero_point + round(top / y_scale) if top else 127,
    )
    assert np.array_equal(y, expected)
    assert len(np.unique(y)) > (1 if top else 50)


@pytest.mark.parametrize("bias, x", [((1 << 31) - 1, 2), (-(1 << 31), -2)])
def test_tflite_sums_wrap(tflm, bias, x):
    y = fully_connected(tflm, [bias], 1, 2.0**-25, 1, x=np.full((1, 1), x, np.int8))
    acc = add_bias(np.full((1, 1), x), bias)
    assert np.array_equal(y, requantize(acc, *quantize_multiplier(2.0**-25)))
    assert np.sign(y[0, 0]) == -np.sign(x)


@pytest.mark.parametrize("name, function, exact", [
    ("LOGISTIC", sigmoid, True), ("TANH", tanh, True),
    ("ELU", lambda x: x if x > 0 else math.expm1(x), True),
    # TFLite Micro computes these two in integers, within one of the exact function.
    ("HARD_SWISH", hard_swish, False), ("LEAKY_RELU", leaky_relu(np.float32(0.1)), False),
])
def test_tflite_tables(tflm, name, function, exact):
    rng = np.random.default_rng(4)
    options = ("LeakyReluOptions", {"alpha": 0.1}) if name == "LEAKY_RELU" else None
    for _ in range(40):
        x_scale, x_zero_point = np.float32(rng.uniform(0.01, 0.08)), int(rng.integers(-128, 128))
        y_scale, y_zero_point = np.float32(rng.uniform(0.01, 0.08)), int(rng.integers(-128, 128))
        if name in ("LOGISTIC", "TANH"):  # it takes no others
            y_scale, y_zero_point = (1 / 256, -128) if name == "LOGISTIC" else (1 / 128, 0)
        tensors = {
            "x": T((1, 256), scale=x_scale, zero=x_zero_point),
            "y": T((1, 256), scale=y_scale, zero=y_zero_point),
        }
        run = tflm(build(tensors, [(name, ["x"], ["y"], options)], ["x"], ["y"]))
        table = activation_table(function, x_scale, x_zero_point, y_scale, y_zero_point)
        y = run(ALL)
        off = np.abs(activate(ALL, table).astype(int) - y)
        assert off.max() <= (0 if exact else 1)
