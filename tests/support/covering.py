"""Few Configs on which the quick tests run: any two settings that can meet, meet in one of them."""

import itertools

from weft.config import Config

__all__ = ["CONFIGS", "pairs", "settings"]


def settings(config: Config) -> dict:
    """The settings of a Config: each field, its numbers in the classes that designs differ by."""
    def size(value, *bounds):
        """The class of a number: how many of ``bounds`` it reaches."""
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
    """Every two settings of a Config, with the names of their fields."""
    return set(itertools.combinations(sorted(settings(config).items()), 2))


CONFIGS = []
