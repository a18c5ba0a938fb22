"""Small cores for networks, for tests of their blocks."""

from weft.chip.config import ChipConfig
from weft.config import Config

__all__ = ["small_chip"]


def small_chip(rows, cols, depth, *, lanes=1, target="generic", **more):
    """A ChipConfig of a small array; ``more`` are its own parameters."""
    core = Config(
        rows=rows, cols=cols, depth=depth, lanes=lanes, activation="none", requantize="single",
        target=target,
    )
    return ChipConfig(core=core, **{"words": 16, "read_vectors": 1} | more)
