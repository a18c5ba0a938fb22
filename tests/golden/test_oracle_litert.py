"""The golden models against LiteRT's default kernels (XNNPACK), on generated layers."""

import importlib.util
import platform
from types import SimpleNamespace

import numpy as np
import pytest

from tools.tflite_writer import fully_connected_file
from weft.golden import add_bias, matmul, requantize
from weft.quantize import onnx_scale, tflite_scale


@pytest.fixture(scope="module")
def litert():
    """``litert(layer, x, activation=0, default=True)``: the results of LiteRT for rows ``x``.

    Without ``default`` by its builtin kernels.
    """
    if importlib.util.find_spec("ai_edge_litert") is None:
        pytest.skip("LiteRT is not installed: the wheel is ai-edge-litert")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"LiteRT must run on x86-64 to round as here, not on {platform.machine()}")
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType

    def run(layer, x, activation=0, *, default=True):
        held = interpreter.Interpreter(
            model_content=fully_connected_file([layer], [activation], rows=len(x)),
            experimental_op_resolver_type=(
                kinds.AUTO if default else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            ),
        )
        held.allocate_tensors()
        held.set_tensor(held.get_input_details()[0]["index"], x)
        held.invoke()
        return held.get_tensor(held.get_output_details()[0]["index"]).copy()

    return run


def random_layer(rng, per_channel):
    """A layer with results over the whole range of int8, input rows, and their sums."""
    k, n, m = rng.integers([1, 1, 1], [300, 80, 40])
    w = rng.integers(-127, 127, (n, k), np.int8, endpoint=True)
    x = rng.integers(-128, 127, (m, k), np.int8, endpoint=True)
    x_scale = np.exp2(rng.uniform(-7, -3))
    w_scale = np.exp2(rng.uniform(-9, -6, n if per_channel else ()))
    layer = SimpleNamespace(
        weights=w, bias=rng.integers(-5000, 5000, n).astype(np.int32),
        x_scale=np.float32(x_scale), w_scale=np.float32(w_scale),
        y_scale=np.float32(x_scale * np.mean(w_scale) * np.sqrt(k) * 91),
        x_zero_point=int(rng.integers(-128, 128)), y_zero_point=int(rng.integers(-128, 128)),
    )
    acc = add_bias(matmul(x, w.T, a_zero_point=layer.x_zero_point), layer.bias)
    return layer, x, acc


def finished(layer, acc, mode, **clamp):
    """The golden results in ``mode``, with the layer's scales."""
    scales = layer.x_scale, layer.w_scale, layer.y_scale
    options = {"mode": mode, "zero_point": layer.y_zero_point} | clamp
    if mode == "onnx":
        return requantize(acc, scale=onnx_scale(*scales), **options)
    return requantize(acc, *tflite_scale(*scales), **options)


@pytest.mark.parametrize("activation, top", [(0, None), (1, None), (3, 6)])  # none, ReLU, ReLU6
@pytest.mark.parametrize("per_channel", [False, True])
def test_both_modes_equal_the_default_kernels(litert, per_channel, activation, top):
    rng = np.random.default_rng([per_channel, activation])
    differ = 0
    for _ in range(12):
        layer, x, acc = random_layer(rng, per_channel)
        clamp = {}
        if activation:
            clamp["low"] = layer.y_zero_point
        if top:
            clamp["high"] = min(127, layer.y_zero_point + round(top / layer.y_scale))
        y = litert(layer, x, activation)
        for mode in ("single", "onnx"):
            assert np.array_equal(y, finished(layer, acc, mode, **clamp)), mode
        differ += np.sum(y != finished(layer, acc, "tflite", **clamp))
    assert differ > 0  # the third mode is another rule


def test_the_builtin_kernels_follow_another_rule(litert):
    rng = np.random.default_rng(3)
    differ = dict.fromkeys(("tflite", "single", "onnx"), 0)
    for _ in range(12):
        layer, x, acc = random_layer(rng, per_channel=True)
        y = litert(layer, x, default=False)
        for mode in differ:
            differ[mode] += np.sum(y != finished(layer, acc, mode))
    assert all(differ.values())


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_onnx_equals_the_default_kernels_next_to_ties(litert, sums, per_channel, ties):
    """If x is its zero point, the sum is the bias: a layer tests only the requantizer."""
    rng = np.random.default_rng([per_channel, ties])
    count = 4096
    differ = {"single": 0, "a scale formed in float64": 0}
    for _ in range(8):
        exponents = rng.uniform(-20, -1, count if per_channel else ())
        w_scale = np.exp2(np.rint(exponents) if ties else exponents).astype(np.float32)
        x_scale, y_scale = np.float32([1, 1] if ties else rng.uniform(0.5, 2, 2))
        wide = np.float64(x_scale) * w_scale.astype(np.float64) / np.float64(y_scale)
        acc = sums(rng, np.broadcast_to(wide, count))
        layer = SimpleNamespace(
            weights=np.ones((count, 1), np.int8), bias=acc, x_scale=x_scale, w_scale=w_scale,
            y_scale=y_scale, x_zero_point=3, y_zero_point=int(rng.integers(-128, 128)),
        )
        y = litert(layer, np.full((1, 1), 3, np.int8))[0]
        assert np.array_equal(y, finished(layer, acc, "onnx"))
        differ["single"] += np.sum(y != finished(layer, acc, "single"))
        other = requantize(
            acc, scale=wide.astype(np.float32), mode="onnx", zero_point=layer.y_zero_point
        )
        differ["a scale formed in float64"] += np.sum(y != other)
    assert differ["single"] > 0  # it takes ties up, and has more bits of the scale
    assert (differ["a scale formed in float64"] > 0) != ties
