"""Random Configs are legal and repeatable, and reach every value."""

import dataclasses

import numpy as np
import pytest

from weft.config import Config
from weft.dtypes import DTYPES
from weft.mac_cells import MULTIPLIERS
from weft.regress.case import MAX_SIZE, MAX_WORDS, random_config
from weft.targets import TARGETS

FIELDS = {field.name: field.metadata for field in dataclasses.fields(Config)}


@pytest.fixture(scope="module")
def configs():
    rng = np.random.default_rng(1)
    return [random_config(rng) for _ in range(170)]


def powers(low, high):
    return {1 << n for n in range(17) if low <= 1 << n <= high}


def test_the_same_seed_gives_the_same_config():
    one, same, other = (random_config(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.slow
def test_draws_every_value_of_every_field(configs):
    sizes = set(range(1, MAX_SIZE + 1))
    expected = {
        "rows": sizes, "cols": sizes, "depth": sizes, "hop": sizes,
        "dsp_cols": {0, *sizes}, "ram_cols": {0, 1},
        "target": set(TARGETS),
        "multiplier": set(MULTIPLIERS) - {"auto"},
        "drain": {"overlapped", "folded"},
        "dtype": set(DTYPES),
        "flush_subnormals": {False, True},
        "a_words": powers(32, MAX_WORDS), "b_words": powers(32, MAX_WORDS),
        "c_words": {0, *powers(32, MAX_WORDS)},
        "lanes": powers(1, 64),
        "requantize": {"none", "tflite", "single", "onnx"},
        "scale_cycles": powers(1, 32),
        "activation": {"none", "table", "clamp"},
        "b_zero_point": {"none", "column"},
        "bytes_in": powers(1, 64), "bytes_out": powers(1, 64),
        "jobs": powers(2, 16),
    }
    assert {name: {getattr(config, name) for config in configs} for name in FIELDS} == expected


def test_lanes_may_fill_the_result_stream(configs):
    # The choice of lanes must not depend on the default of bytes_out.
    scaled = [config for config in configs if config.requantize != "none"]
    assert any(config.lanes == config.bytes_out >= 16 for config in scaled)


def test_small_designs_are_likelier(configs):
    assert np.mean([config.peak for config in configs]) < 25
    assert sum(config.rows == config.cols == 1 for config in configs) > 10
