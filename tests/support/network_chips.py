"""Cores for networks on which tests compile networks."""

from weft.chip.config import ChipConfig
from weft.config import Config

__all__ = ["BATCH1", "LARGE", "ODD", "SIMULATED", "SMALL", "TINY", "network_chip"]


def network_chip(rows, cols, depth, lanes, *, words=4096, b_words=512, lines=512, reads=4, **core):
    """A core for networks; ``reads`` is `read_vectors`."""
    return ChipConfig(
        core=Config(
            rows=rows, cols=cols, depth=depth, lanes=lanes, activation="none",
            **{"requantize": "tflite", **core},
        ),
        words=words, b_words=b_words, lines=lines, read_vectors=reads,
    )


LARGE = network_chip(8, 8, 8, 8, multiplier="fip")
SMALL = network_chip(8, 4, 4, 4, multiplier="fip")
BATCH1 = network_chip(1, 32, 16, 8, words=8192, b_words=1024, lines=1024, multiplier="fip")
ODD = network_chip(3, 2, 8, 1, words=16384, b_words=1024, lines=64, reads=1)
TINY = network_chip(5, 8, 2, 2, words=16384, b_words=600, reads=2, multiplier="plain")
# The core that quick tests simulate: they share its model.
SIMULATED = network_chip(
    3, 4, 4, 2, words=1024, b_words=256, lines=64, reads=2, multiplier="fip"
)
