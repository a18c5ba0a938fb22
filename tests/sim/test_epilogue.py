"""Epilogues that change from job to job, on the simulated hardware, against the golden models."""

import numpy as np
import pytest
from products import integers
from tiers import tiers

from weft.config import Config
from weft.golden import activate, add_bias, matmul, requantize
from weft.host import Accelerator
from weft.host.emulated import GoldenTransport
from weft.quantize import activation_table, gelu

SMALL = {"a_words": 128, "b_words": 128}
CONFIGS = {
    "tflite-slow": Config(
        rows=3, cols=5, depth=2, target="ecp5", lanes=1, scale_cycles=16, **SMALL
    ),
    "tflite": Config(rows=4, cols=6, depth=2, **SMALL),
    "onnx": Config(
        rows=3, cols=4, depth=4, multiplier="fip", requantize="onnx", b_zero_point="column",
        bytes_out=8, **SMALL,
    ),
    "single": Config(
        rows=5, cols=3, requantize="single", lanes=1, bytes_in=4, bytes_out=2, **SMALL
    ),
}
ALL = pytest.mark.parametrize("config", tiers(CONFIGS, long={"tflite-slow", "onnx", "tflite"}))


def scaling(random, config, shape, k):
    """Arguments that scale sums to a few hundred; sometimes any allowed ones."""
    any_scale = random.random() < 0.2
    if config.requantize == "onnx":
        scale = np.float32(2.0 ** random.uniform(*((-126, 127) if any_scale else (-14, -6)), shape))
        return {"scale": scale}
    low, high = (-31, 31) if any_scale else (-9 - k.bit_length() // 2, -6 - k.bit_length() // 2)
    multiplier = random.integers(1 << 30, 1 << 31, shape)
    return {
        "multiplier": np.where(random.random(shape) < 0.05, 0, multiplier),
        "shift": random.integers(low, high, shape, endpoint=True),
    }


def expected(config, a, b, *, a_zero_point, b_zero_point, bias, activation, out_dtype, **options):
    acc = add_bias(matmul(a, b, a_zero_point=a_zero_point, b_zero_point=b_zero_point), bias)
    y = requantize(acc, **options, mode=config.requantize, dtype=out_dtype)
    return y if activation is None else activate(y, activation)


@ALL
def test_alternating_layers_on_resident_weights(config, accelerators):
    random = np.random.default_rng(5)
    accelerator = accelerators(config)
    k, sizes = 30, (config.cols, 2 * config.cols + 1)
    weights = [integers(random, np.int8, k, n) for n in sizes]
    handles = [accelerator.load(w) for w in weights]
    a = integers(random, np.int8, 2 * config.rows + 1, k)
    table = activation_table(gelu, 0.05, 0, 0.05, 0)
    common = {"a_zero_point": 3, "b_zero_point": None, "out_dtype": np.int8}
    epilogues = [
        scaling(random, config, (n,), k) | common
        | {"bias": random.integers(-999, 999, n), "activation": None}
        for n in sizes
    ]
    for layer in (0, 1, 0, 1, 1):
        for changes in ({}, {"activation": table}, {"low": 0}):
            options = epilogues[layer] | changes
            results = expected(config, a, weights[layer], **options)
            assert np.array_equal(accelerator.matmul(a, handles[layer], **options), results)
        raw = accelerator.matmul(a, handles[layer])
        assert np.array_equal(raw, matmul(a, weights[layer]))
    for handle in handles:
        handle.free()


def test_each_product_of_a_batch_has_its_own_parameters(transports):
    """Tables and parameters change between jobs back to back."""
    config = CONFIGS["onnx"]
    random = np.random.default_rng(7)
    simulated, model = (Accelerator(t) for t in (transports(config), GoldenTransport(config)))
    for a_shape, b_shape in (((5, 4, 9), (5, 9, 6)), ((5, 4, 9), (9, 6)), ((4, 9), (5, 9, 6))):
        a, b = integers(random, np.int8, *a_shape), integers(random, np.int8, *b_shape)
        options = {
            "scale": np.float32(2.0 ** random.uniform(-10, -6, (5, 6))),
            "bias": random.integers(-999, 999, (5, 1)), "record": True,
            "a_zero_point": integers(random, np.int8, 5, 1),
            "b_zero_point": integers(random, np.int8, 5, 6),
        }
        for tables in ({}, {"activation": integers(random, np.int8, 5, 256)}):
            (y, cost), (golden, predicted) = (
                accelerator.matmul(a, b, **options, **tables) for accelerator in (simulated, model)
            )
            assert np.array_equal(y, golden)
            assert cost == predicted
