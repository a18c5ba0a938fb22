"""`Layer`: whole on an accelerator, finished by the host, and wrong attributes."""


import numpy as np
import pytest
from rejects import rejects

from weft import Accelerator, Config
from weft.demo import Layer
from weft.host.golden import GoldenTransport

HALF = 1 << 30


def layer(**changes):
    """Two inputs, three outputs; the scale is 1, except 1/2 for the last output."""
    return Layer(**{
        "name": "layer 1",
        "weights": np.array([[1, 2], [3, -4], [-128, 127]], np.int8),
        "bias": np.array([10, -20, 30], np.int32),
        "multiplier": np.full(3, HALF, np.int32),
        "shift": np.array([1, 1, 0], np.int32),
        "x_zero_point": -3, "y_zero_point": 4, "low": 4, "high": 100,
        "x_scale": 0.5, "y_scale": 2.0,
        "w_scale": np.ones(3, np.float32),
        "float_weights": np.ones((3, 2), np.float32),
        "float_bias": np.array([0, -5, 1], np.float32),
    } | changes)  # fmt: skip


def accelerator(**fields):
    config = Config(rows=2, cols=2, a_words=64, b_words=64, **fields)
    return Accelerator(GoldenTransport(config), config)


X = np.array([[-3, 7], [50, -3]], np.int8)
# 20 + 10 + 4, -60 + 4 clamped, 650 + 4 clamped; 53 + 10 + 4, 139 + 4 clamped, under low
Y = [[34, 4, 100], [67, 100, 4]]


@pytest.mark.parametrize("mode", ["none", "single", "onnx"])
def test_run_finishes_sums_if_the_core_cannot(mode):
    run = layer().run(X, accelerator(requantize=mode))
    assert run.sums.tolist() == [[20, -40, 1270], [53, 159, -6784]]
    assert (run.name, run.m, run.k, run.n) == ("layer 1", 2, 2, 3)
    assert run.x is X and run.record.macs == 12
    assert run.y.dtype == np.int8 and run.y.tolist() == Y


def test_run_computes_the_whole_layer_on_the_core():
    run = layer().run(X, accelerator())
    assert run.sums is None
    assert (run.name, run.m, run.k, run.n) == ("layer 1", 2, 2, 3)
    assert run.x is X and run.record.macs == 12
    # two tiles across: chunks of 4 bytes, two rows each, in one word
    assert run.record.bytes_out == 16
    assert run.y.dtype == np.int8 and run.y.tolist() == Y


@pytest.mark.parametrize("seed", range(5))
def test_core_and_host_agree(seed):
    rng = np.random.default_rng(seed)
    some = layer(
        weights=rng.integers(-128, 128, (7, 40)).astype(np.int8),
        bias=rng.integers(-9999, 9999, 7).astype(np.int32),
        multiplier=rng.integers(1 << 30, 1 << 31, 7).astype(np.int32),
        shift=rng.integers(-11, -6, 7).astype(np.int32),
        w_scale=np.ones(7, np.float32), float_weights=np.ones((7, 40), np.float32),
        float_bias=np.ones(7, np.float32), low=-100,
    )
    x = rng.integers(-128, 128, (9, 40)).astype(np.int8)
    ours, theirs = (some.run(x, accelerator(requantize=mode)).y for mode in ("tflite", "none"))
    assert np.array_equal(ours, theirs)
    assert len(np.unique(ours)) > 20


def test_finish_clamps_to_low_and_high():
    sums = np.array([[-200, 0, 200]], np.int32)
    assert layer(low=-128, high=127).finish(sums).tolist() == [[-128, -16, 119]]
    assert layer(low=-9, high=50).finish(sums).tolist() == [[-9, -9, 50]]


def test_run_float_is_the_layer_before_quantization():
    x = np.array([[1, 2]], np.float32)
    assert layer().run_float(x, relu=False).tolist() == [[3, -2, 4]]
    assert layer().run_float(x, relu=True).tolist() == [[3, 0, 4]]


@pytest.mark.parametrize("changes, error, message", [
    ({"weights": np.zeros(2, np.int8)}, ValueError, "weights must be of shape [N, K], not (2,)"),
    ({"weights": np.zeros((0, 2), np.int8)}, ValueError,
     "weights must be of shape [N, K], not (0, 2)"),
    ({"weights": np.zeros((3, 2), np.uint8)}, TypeError, "weights must be int8, not uint8"),
    ({"bias": np.zeros(2, np.int32)}, ValueError, "bias must be of shape (3,), not (2,)"),
    ({"shift": np.zeros(3, np.int64)}, TypeError, "shift must be int32, not int64"),
    ({"shift": np.full(3, 32, np.int32)}, ValueError, "shift must be in -31..31, not 32"),
    ({"multiplier": np.full(3, -1, np.int32)}, ValueError,
     "multiplier must be in 0..2147483647, not -1"),
    ({"x_zero_point": 128}, ValueError, "x_zero_point must be in -128..127, not 128"),
    ({"low": 101}, ValueError, "low must be at most high (100), not 101"),
    ({"y_scale": 0.0}, ValueError, "y_scale must be positive and finite, not 0.0"),
    ({"w_scale": np.array([1, np.inf, 1], np.float32)}, ValueError,
     "w_scale must be finite, not inf"),
    ({"float_bias": np.array([1, np.nan, 1], np.float32)}, ValueError,
     "float_bias must be finite, not nan"),
])  # fmt: skip
def test_rejects_wrong_attributes(changes, error, message):
    with rejects(error, message):
        layer(**changes)
