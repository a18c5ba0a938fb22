"""Predicted cycles of products: equal to the full cycle model, in few steps for any size."""

import random

import pytest
from tiers import quick

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.host.planner import Planner
from weft.host.product_cycles import product_cycles

SEED = 20264
RAW = JobFlag(0)
TINY = {"a_words": 64, "b_words": 64, "jobs": 2}


def commands(planner, m, k, n, flags):
    return [c for step in planner.plan(m, n, k, flags=flags) for c in step.commands]


@pytest.mark.parametrize("config", quick(4, [
    Config(rows=2, cols=2, depth=2, **TINY),
    Config(rows=1, cols=3, bytes_in=2, lanes=1, bytes_out=1, **TINY),
    Config(rows=3, cols=2, bytes_in=4, drain="folded", requantize="none", jobs=4, a_words=32),
    Config(rows=2, cols=1, lanes=1, a_words=32, b_words=256, jobs=2),  # B has many places
    Config(dtype="bf16", rows=2, cols=2, **TINY),
    Config(dtype="bf16", rows=1, cols=2, bytes_in=4, lanes=1, a_words=512, b_words=64, jobs=2),
]), ids=lambda config: config.name)
def test_equals_the_prediction_of_all_commands(config):
    draw = random.Random(SEED)
    for _ in range(15):
        m, n = (draw.choice([1, draw.randint(1, 40), draw.randint(1, 120)]) for _ in range(2))
        k = draw.choice([draw.randint(1, 50), draw.randint(1, 400)])
        flags = draw.choice([RAW, *epilogue_flags(config)[:1]])
        if m * n * k > 60_000:
            continue  # too many jobs for a test
        planner = Planner(config)
        once = commands(planner, m, k, n, flags)
        thrice = once + commands(planner, m, k, n, flags) + commands(planner, m, k, n, flags)
        said = [predict(config, sent) for sent in (once, thrice)]
        found = product_cycles(config, m, k, n, flags, [1, 3])
        assert found == [(one.cycles, one.cold) for one in said], (m, k, n, flags)


HUGE = 2_000_000_000


@pytest.mark.parametrize("shape", [
    (100_000, 100_000, 100_000), (1, HUGE, 1), (HUGE, 1, 1), (1, 1, HUGE), (HUGE, 64, HUGE),
    (1, 5000, HUGE), (HUGE, 3, 50), (HUGE, 131_071, HUGE),
])
@pytest.mark.parametrize("config", [
    Config(), Config(rows=1, cols=1, lanes=1, bytes_out=1),
    Config(rows=16, cols=16, lanes=2, bytes_in=2, bytes_out=2, a_words=512, requantize="onnx"),
    Config(dtype="bf16"), Config(dtype="bf16", rows=1, cols=2, a_words=32, b_words=1 << 16),
], ids=lambda config: config.name)
def test_takes_few_steps_for_any_size(config, shape, passes):
    m, k, n = shape
    for flags in (RAW, *epilogue_flags(config)[:1]):
        passes.clear()
        _, (early, _), (late, _) = product_cycles(config, m, k, n, flags, [1, 4, 8])
        # No PE takes more than its operands each cycle.
        assert late - early >= 4 * m * k * n // config.peak
        assert len(passes) < 6000


def test_says_full_rate_of_a_huge_product():
    # Whole tiles of K = 64 steps, more than any drain or load takes: one after another.
    (early, _), (late, _) = product_cycles(Config(), 8 << 20, 64, 8 << 20, RAW, [4, 8])
    assert late - early == 4 * (1 << 40) * 64
