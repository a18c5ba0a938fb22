"""Steady-state intervals by the cycle model and in simulation."""

import pytest

from weft.cli import bench
from weft.cli.bench import (
    ResultMismatch,
    measure_interval,
    predict_interval,
    simulate_interval,
)
from weft.config import Config
from weft.host import Accelerator, GoldenTransport

SMALL = Config(rows=4, cols=4, depth=4)  # a model that other tests need, too


@pytest.mark.parametrize("mode", ["tflite", "single", "onnx", "none"])
def test_the_better_size_counts(mode, monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (24, 40))
    config = Config(rows=4, cols=4, depth=2, requantize=mode)
    with Accelerator(GoldenTransport(config), config) as accelerator:
        found = {size: measure_interval(accelerator, size) for size in (24, 40)}
    assert all(found[size] >= size**3 / 32 for size in found)
    best = min(found, key=lambda size: found[size] / size**3)
    assert predict_interval(config) == (best, found[best])


@pytest.mark.parametrize("flush", [False, True])
def test_a_bf16_core_returns_bfloat16(flush, monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (24,))
    config = Config(dtype="bf16", rows=2, cols=2, flush_subnormals=flush)
    size, interval = predict_interval(config)
    assert size == 24
    assert 24**3 / 4 <= interval < 1.1 * 24**3 / 4


def test_the_hardware_takes_as_many_cycles():
    with Accelerator(GoldenTransport(SMALL), SMALL) as accelerator:
        predicted = measure_interval(accelerator, 48)
    assert simulate_interval(SMALL, 48) == predicted


def test_reports_a_wrong_result(monkeypatch):
    monkeypatch.setattr("weft.golden.add_bias", lambda sums, bias: sums)
    with Accelerator(GoldenTransport(SMALL), SMALL) as accelerator:
        with pytest.raises(ResultMismatch, match="^results of 4x4x4 differ from golden$"):
            measure_interval(accelerator, 16)
