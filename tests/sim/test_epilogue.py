"""Products with the int8 epilogue on the simulated hardware, against the golden models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import integers
from tiers import tiers

from weft.config import Config
from weft.golden import activate, add_bias, matmul, requantize
from weft.host import Accelerator
from weft.host.golden import GoldenTransport
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
ALL = pytest.mark.parametrize("config", tiers(CONFIGS, "onnx"))
types = st.sampled_from([np.int8, np.uint8])


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
@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    m=st.integers(1, 20), k=st.one_of(st.integers(1, 70), st.integers(500, 700)),
    n=st.integers(1, 20), a_type=types, y_type=types, seed=st.integers(0, 1 << 20),
    batch=st.sampled_from([(), (2,)]), each=st.tuples(*[st.booleans()] * 3), clamp=st.booleans(),
    table=st.booleans(),
)
def test_any_product(
    config, transports, m, k, n, a_type, y_type, seed, batch, each, clamp, table
):
    random = np.random.default_rng(seed)
    shapes = [(n,) if of_column else () for of_column in each]
    b_type = np.int8
    if config.b_zero_point == "column":
        b_type = random.choice([np.int8, np.uint8])
    a, b = integers(random, a_type, m, k), integers(random, b_type, *batch, k, n)
    info = np.iinfo(y_type)
    low, high = sorted(int(y) for y in integers(random, y_type, 2)) if clamp else (None, None)
    zeros = b_type != np.int8 or config.b_zero_point == "column"
    options = scaling(random, config, shapes[0], k) | {
        "bias": random.integers(-(1 << 16), 1 << 16, shapes[1]),
        "a_zero_point": int(integers(random, a_type)),
        "b_zero_point": integers(random, b_type, *shapes[2]) if zeros else None,
        "zero_point": int(random.integers(info.min, info.max, endpoint=True)),
        "low": low, "high": high, "out_dtype": y_type,
        "activation": integers(random, y_type, 256) if table else None,
    }
    accelerator = Accelerator(transports(config), config)
    results = expected(config, a, b, **options)
    for _ in range(2):  # the second one has resident parameters
        y = accelerator.matmul(a, b, **options)
        assert y.dtype == results.dtype
        assert np.array_equal(y, results)


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


@ALL
@pytest.mark.parametrize("shape", [(9, 40, 13), (6, 600, 7), (1, 5, 1)])
def test_cycles_equal_the_cycle_model(config, transports, shape):
    m, k, n = shape
    random = np.random.default_rng(6)
    a, b = integers(random, np.int8, m, k), integers(random, np.int8, k, n)
    options = scaling(random, config, (n,), k)
    options |= {"activation": integers(random, np.int8, 256), "bias": 7}
    simulated, model = (Accelerator(t) for t in (transports(config), GoldenTransport(config)))
    for changes in ({}, {}, {"bias": 8}, {"activation": None}):
        (y, cost), (golden, predicted) = (
            accelerator.matmul(a, b, **options | changes, record=True)
            for accelerator in (simulated, model)
        )
        assert np.array_equal(y, golden)
        assert cost == predicted


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
