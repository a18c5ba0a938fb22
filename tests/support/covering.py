"""Configs for tests: every legal pair of settings is in at least one; and some for each tier."""

import itertools

import pytest

from weft.config import Config

__all__ = ["CASES", "CONFIGS", "QUICK", "SLOW", "pairs", "settings"]


def settings(config: Config) -> dict:
    """The settings of a Config: its fields, with numbers replaced by classes of sizes."""
    def size(value, *bounds):
        """The class of a number: the count of ``bounds`` that it reaches."""
        return sum(value >= bound for bound in bounds)

    return {
        "dtype": config.dtype, "target": config.target, "drain": config.drain,
        "multiplier": config.multiplier, "requantize": config.requantize,
        "activation": config.activation, "b_zero_point": config.b_zero_point,
        "flush_subnormals": config.flush_subnormals, "c_words": config.c_words > 0,
        "rows": size(config.rows, 2, 4), "cols": size(config.cols, 2, 4),
        "depth": size(config.depth, 2, 4), "hop": size(config.hop, 2, 4),
        "lanes": size(config.lanes, 2, config.cols + 1),
        "scale_cycles": size(config.scale_cycles, 2, 8),
        "bytes_in": size(config.bytes_in, 4, 32), "bytes_out": size(config.bytes_out, 4, 32),
        "jobs": size(config.jobs, 4), "dsp_cols": size(config.dsp_cols, 1, config.cols),
    }


def pairs(config: Config) -> set:
    """All pairs of settings of a Config, with the names of their fields."""
    return set(itertools.combinations(sorted(settings(config).items()), 2))


CONFIGS = [
    Config(
        rows=1, cols=1, hop=3, drain="folded", a_words=64, b_words=32, lanes=1, requantize="none",
        scale_cycles=8, b_zero_point="column", bytes_in=1, bytes_out=1, jobs=2,
    ),
    Config(
        rows=1, cols=1, depth=2, hop=5, target="ice40hx", drain="folded", a_words=32, b_words=64,
        lanes=1, scale_cycles=2, b_zero_point="column", bytes_in=4, bytes_out=32, jobs=2,
    ),
    Config(
        rows=2, cols=1, depth=2, hop=1, target="ice40up", dsp_cols=0, a_words=32, b_words=64,
        lanes=2, requantize="single", scale_cycles=2, activation="none", bytes_in=2, bytes_out=8,
        jobs=2,
    ),
    Config(
        rows=1, cols=1, depth=4, hop=2, target="ecp5", a_words=32, b_words=32, lanes=1,
        requantize="single", activation="none", bytes_in=4, bytes_out=32, jobs=2,
    ),
    Config(
        rows=1, cols=4, target="ecp5", dsp_cols=2, ram_cols=1, drain="folded", a_words=32,
        b_words=128, lanes=1, scale_cycles=8, activation="none", bytes_in=8, bytes_out=32, jobs=4,
    ),
    Config(
        rows=2, cols=1, depth=2, target="ice40hx", multiplier="plain", drain="folded",
        a_words=128, b_words=64, lanes=1, requantize="single", scale_cycles=16, activation="none",
        bytes_in=32, bytes_out=1, jobs=4,
    ),
    Config(
        rows=1, cols=5, hop=2, target="ice40up", dsp_cols=1, a_words=32, b_words=64, lanes=2,
        requantize="onnx", scale_cycles=16, activation="none", bytes_in=2, bytes_out=2, jobs=4,
    ),
    Config(
        rows=6, cols=1, hop=2, a_words=32, b_words=32, scale_cycles=2, activation="none",
        b_zero_point="column", bytes_out=4, jobs=16,
    ),
    Config(
        rows=2, cols=2, depth=2, target="ecp5", multiplier="plain", drain="folded", a_words=32,
        b_words=64, lanes=2, requantize="none", scale_cycles=2, activation="none",
        b_zero_point="column", bytes_in=4, bytes_out=1, jobs=16,
    ),
    Config(
        rows=4, cols=2, hop=1, drain="folded", a_words=32, b_words=64, lanes=2,
        requantize="single", b_zero_point="column", bytes_in=1, bytes_out=2,
    ),
    Config(
        rows=1, cols=2, depth=4, hop=1, target="ecp5", dsp_cols=1, ram_cols=1, a_words=128,
        b_words=32, lanes=2, scale_cycles=4, activation="none", bytes_in=2, bytes_out=4, jobs=4,
    ),
    Config(
        rows=1, cols=4, depth=2, hop=3, target="ice40up", dsp_cols=1, a_words=64, b_words=32,
        lanes=8, bytes_in=2, bytes_out=8, jobs=16,
    ),
    Config(
        rows=5, cols=2, hop=2, target="ecp5", dsp_cols=1, ram_cols=1, a_words=64, b_words=32,
        lanes=2, requantize="single", scale_cycles=16, activation="none", b_zero_point="column",
        bytes_in=4, bytes_out=32, jobs=4,
    ),
    Config(
        rows=1, cols=2, depth=6, multiplier="fip", drain="folded", a_words=32, b_words=32,
        lanes=1, requantize="onnx", activation="none", bytes_in=32, bytes_out=2,
    ),
    Config(
        rows=2, cols=2, depth=3, hop=2, target="ice40up", dsp_cols=1, drain="folded", a_words=32,
        b_words=32, lanes=1, requantize="onnx", b_zero_point="column", bytes_in=4, bytes_out=8,
        jobs=2,
    ),
    Config(
        rows=6, cols=1, depth=2, hop=1, target="ice40hx", a_words=128, b_words=64, lanes=2,
        requantize="onnx", scale_cycles=32, bytes_in=4, jobs=2,
    ),
    Config(
        rows=1, cols=6, depth=2, hop=8, target="ice40hx", drain="folded", a_words=128,
        b_words=128, lanes=1, requantize="single", scale_cycles=32, activation="none", bytes_in=8,
        bytes_out=2, jobs=4,
    ),
    Config(
        rows=1, cols=2, depth=6, hop=3, multiplier="fip", a_words=64, b_words=128, lanes=1,
        requantize="onnx", scale_cycles=2, activation="none", b_zero_point="column", bytes_in=32,
        bytes_out=32, jobs=2,
    ),
    Config(
        rows=4, cols=1, depth=4, hop=5, target="ecp5", drain="folded", a_words=32, b_words=64,
        lanes=2, scale_cycles=32, b_zero_point="column", bytes_in=2, bytes_out=4, jobs=2,
    ),
    Config(
        rows=2, cols=4, depth=2, hop=2, a_words=32, b_words=32, lanes=1, scale_cycles=2,
        b_zero_point="column", bytes_in=32, bytes_out=1, jobs=2,
    ),
    Config(
        rows=2, cols=2, depth=4, hop=1, target="ice40hx", drain="folded", a_words=64, b_words=32,
        lanes=2, requantize="none", scale_cycles=2, activation="none", bytes_in=4, bytes_out=2,
        jobs=2,
    ),
    Config(
        rows=4, cols=4, hop=2, drain="folded", a_words=32, b_words=64, lanes=1, requantize="none",
        activation="none", b_zero_point="column", bytes_out=2, jobs=16,
    ),
    Config(
        rows=4, cols=1, depth=5, hop=5, target="ice40up", drain="folded", a_words=64, b_words=128,
        lanes=1, requantize="none", scale_cycles=16, b_zero_point="column", bytes_in=32,
        bytes_out=1,
    ),
    Config(
        rows=1, cols=4, depth=6, hop=2, target="ecp5", drain="folded", a_words=32, b_words=32,
        lanes=2, requantize="onnx", scale_cycles=2, b_zero_point="column", bytes_in=4, jobs=2,
    ),
    Config(
        rows=1, cols=1, hop=2, target="ice40hx", dtype="bf16", flush_subnormals=True, a_words=32,
        b_words=32, c_words=0, lanes=2, bytes_in=32, bytes_out=2, jobs=2,
    ),
    Config(
        rows=1, cols=2, hop=6, target="ice40hx", dtype="bf16", a_words=64, b_words=32, c_words=32,
        bytes_in=2, bytes_out=32,
    ),
    Config(
        rows=2, cols=1, hop=3, dtype="bf16", flush_subnormals=True, a_words=32, b_words=32,
        c_words=32, activation="none", bytes_in=8, bytes_out=32, jobs=2,
    ),
    Config(
        rows=1, cols=2, hop=1, target="ice40up", dtype="bf16", flush_subnormals=True, a_words=64,
        b_words=64, c_words=32, lanes=2, bytes_in=2, bytes_out=32, jobs=2,
    ),
    Config(
        rows=2, cols=1, hop=7, target="ecp5", dsp_cols=0, dtype="bf16", flush_subnormals=True,
        a_words=32, b_words=32, c_words=32, lanes=1, bytes_in=4, bytes_out=8, jobs=4,
    ),
    Config(
        rows=1, cols=4, hop=1, target="ecp5", dsp_cols=2, dtype="bf16", flush_subnormals=True,
        a_words=32, b_words=128, c_words=32, lanes=2, bytes_in=32, jobs=4,
    ),
    Config(
        rows=5, cols=1, hop=1, dtype="bf16", flush_subnormals=True, a_words=32, b_words=64,
        c_words=64, lanes=1, bytes_in=2, bytes_out=1,
    ),
    Config(
        rows=2, cols=4, depth=6, target="gowin", dsp_cols=1, drain="folded", a_words=32,
        b_words=32, lanes=2, scale_cycles=2, b_zero_point="column", bytes_in=64, bytes_out=4,
        jobs=4,
    ),
    Config(
        rows=1, cols=1, hop=1, target="gowin", drain="folded", a_words=32, b_words=32, lanes=1,
        requantize="single", scale_cycles=8, bytes_out=4, jobs=4,
    ),
    Config(
        rows=1, cols=1, depth=2, hop=1, target="gowin", multiplier="plain", dsp_cols=0,
        drain="folded", a_words=32, b_words=32, requantize="onnx", activation="none",
        b_zero_point="column", bytes_in=2, bytes_out=32,
    ),
    Config(
        cols=2, hop=2, target="gowin", dtype="bf16", flush_subnormals=True, a_words=32,
        b_words=32, c_words=64, bytes_in=8, bytes_out=2, jobs=2,
    ),
]
# Every setting is in at least one of them. Other quick tests use the model of the first one, too.
QUICK = [CONFIGS[n] for n in (0, 16, 17, 18, 27, 31)]
# With the quick ones they have seven of ten pairs.
SLOW = [CONFIGS[n] for n in (12, 14, 20)]


def _marks(config):
    """The mark of a test of the Config: the model of each takes seconds to compile."""
    return () if config in QUICK else pytest.mark.slow if config in SLOW else pytest.mark.long


# All Configs as parameters of a test.
CASES = [pytest.param(config, id=config.name, marks=_marks(config)) for config in CONFIGS]
