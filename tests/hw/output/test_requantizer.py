"""The requantizer against golden: each column with its own parameters, in order, at any rate."""

import pytest
from requantizer_bench import RequantizerBench
from tiers import tiers

from weft.config import Config
from weft.hw.output.requantizer import Requantizer

SMALL = {"rows": 3, "cols": 5, "a_words": 64, "b_words": 64}
CONFIGS = {
    "tflite-table": Config(lanes=2, **SMALL),
    "tflite-plain": Config(lanes=1, activation="none", bytes_in=64, **SMALL),
    "tflite-zeros": Config(lanes=4, depth=2, b_zero_point="column", bytes_in=4, **SMALL),
    "tflite-slow": Config(lanes=1, scale_cycles=8, **SMALL),
    "tflite-slowest": Config(lanes=2, scale_cycles=32, activation="none", **SMALL),
    "tflite-fip": Config(lanes=2, scale_cycles=2, depth=2, multiplier="fip", **SMALL),
    "onnx-slow": Config(lanes=1, requantize="onnx", scale_cycles=4, **SMALL),
    "single": Config(lanes=8, requantize="single", activation="none", **SMALL),
    "single-zeros": Config(lanes=1, requantize="single", b_zero_point="column", **SMALL),
    "onnx-table": Config(lanes=2, requantize="onnx", bytes_in=1, **SMALL),
    "onnx-zeros": Config(
        lanes=4, requantize="onnx", activation="none", b_zero_point="column", **SMALL
    ),
}
ALL = pytest.mark.parametrize("config", tiers(
    CONFIGS, "tflite-table", "tflite-zeros", "tflite-fip", "onnx-slow", "onnx-zeros", "single",
))


@ALL
@pytest.mark.parametrize("idle", [pytest.param(0, marks=pytest.mark.slow), 0.5])
def test_results_equal_goldens_after_the_latency(config, idle):
    bench = RequantizerBench(config)
    assert isinstance(bench.dut, Requantizer)
    bench.check(150, idle)
