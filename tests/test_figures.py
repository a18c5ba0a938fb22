"""The performance that the project promises, measured by the hardware's counters in simulation."""

import numpy as np
import pytest
from ml_dtypes import bfloat16
from products import operands

from weft.commands import Job
from weft.config import Config
from weft.cycles import predict
from weft.golden import add_bias, matmul, matmul_bf16, requantize, to_bfloat16

FLOATS = Config(dtype="bf16", rows=4, cols=4)
SQUARE = Config(rows=8, cols=8, depth=1)
CUBE = Config(rows=4, cols=4, depth=4)
PEAK = 64
both = pytest.mark.parametrize("config", [
    SQUARE, pytest.param(CUBE, marks=pytest.mark.slow)
], ids=lambda config: config.name)


def run(accelerator, m, k, n, copies=1):
    """Cycles of equal products back to back; checks the results."""
    a, b = operands(m, k, n)
    c, record = accelerator.matmul(np.stack([a] * copies), np.stack([b] * copies), record=True)
    assert np.array_equal(c[-1], matmul(a, b))
    return record.cycles


@both
def test_64_cold(config, accelerators):
    assert run(accelerators(config), 64, 64, 64) <= 4250


@both
def test_128_cold(config, accelerators):
    assert run(accelerators(config), 128, 128, 128) <= 33_000


@both
def test_64_in_steady_state(config, accelerators):
    accelerator = accelerators(config)
    interval = (run(accelerator, 64, 64, 64, 8) - run(accelerator, 64, 64, 64, 4)) / 4
    assert 64**3 / (interval * PEAK) >= 0.995


@both
@pytest.mark.parametrize("size", [64, 128])
def test_int8_results_in_steady_state(size, config, accelerators):
    accelerator = accelerators(config)
    a, b = operands(size, size, size)
    bias = np.arange(-size, size, 2, dtype=np.int32)
    finish = {"multiplier": 3 << 29, "shift": -9, "zero_point": -3}
    y = requantize(add_bias(matmul(a, b), bias), mode="tflite", **finish)

    def spent(copies):
        stacks = np.stack([a] * copies), np.stack([b] * copies)
        found, record = accelerator.matmul(*stacks, bias=bias, record=True, **finish)
        assert found.dtype == np.int8 and all(np.array_equal(one, y) for one in found)
        return record

    spent(4)  # from here on the parameters are on the chip
    early, late = spent(2), spent(4)
    assert 2 * size**3 / ((late.cycles - early.cycles) * PEAK) >= 0.99
    raw = accelerator.matmul(a, b, record=True)[1]
    assert 4 * (late.bytes_out - early.bytes_out) == 2 * raw.bytes_out


@both
@pytest.mark.parametrize(("size", "limit"), [(8, 40), (16, 110)])
def test_resident(size, limit, config, accelerators):
    accelerator = accelerators(config)
    a, b = operands(size, size, size)
    with accelerator.load(a, side="a") as left, accelerator.load(b) as right:
        c, record = accelerator.matmul(left, right, record=True)
    assert np.array_equal(c, matmul(a, b))
    assert record.cycles <= limit


@both
@pytest.mark.parametrize("k", range(1, 21))
def test_short_k_at_the_tile_time(k, config, accelerators):
    accelerator = accelerators(config)
    tile_time = max(-(-k // config.depth), config.rows, config.rows * config.cols * 4 // 16)

    def cycles(tiles, jobs):
        a, b = operands(config.rows, k, config.cols * tiles, seed=k)
        with accelerator.load(b) as weights, accelerator.load(a, side="a") as rows:
            steps = [accelerator.matmul(rows, weights, record=True) for _ in range(jobs)]
        assert all(np.array_equal(c, matmul(a, b)) for c, _ in steps)
        return steps[0][1].cycles

    assert cycles(24, 1) - cycles(14, 1) == 10 * tile_time
    # Jobs of one tile on resident operands, by the cycle model, which equals the hardware.
    jobs = [Job(config.rows, config.cols, k, 0, 2, 2, 0, 2, 2)] * 30
    ends = predict(config, jobs).ends
    assert ends[-1] - ends[-11] == 10 * tile_time


@pytest.mark.long
@pytest.mark.parametrize("config", [
    Config(rows=1, cols=16, depth=8, lanes=16, a_words=512, b_words=1024)  # as in test_cycles.py
])
def test_vector_with_resident_weights(config, accelerators):
    accelerator = accelerators(config)
    a, b = operands(1, 640, 128)
    with accelerator.load(b) as weights:
        c, record = accelerator.matmul(a, weights, record=True)
        assert np.array_equal(c, matmul(a, b))
        assert record.macs / (record.cycles * config.peak) >= 0.90


@pytest.mark.long
@pytest.mark.parametrize(("m", "share"), [(64, 0.995), (1, 0.2499)])
@pytest.mark.parametrize("out_dtype", [np.float32, bfloat16], ids=["float32", "bfloat16"])
def test_bf16_in_steady_state(m, share, out_dtype, accelerators):
    # With M = 1 only one row of four has work: at most a quarter.
    accelerator = accelerators(FLOATS)
    a, b = (x.astype(bfloat16) for x in operands(m, 64, 64))
    want = matmul_bf16(a, b)
    want = want if out_dtype == np.float32 else to_bfloat16(want)

    def cycles(copies):
        stacks = np.stack([a] * copies), np.stack([b] * copies)
        found, record = accelerator.matmul(*stacks, record=True, out_dtype=out_dtype)
        assert all(one.tobytes() == want.tobytes() for one in found)
        return record.cycles

    interval = (cycles(8) - cycles(4)) / 4
    assert m * 64 * 64 / (interval * FLOATS.peak) >= share
