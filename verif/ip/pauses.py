"""Random pauses for the channels of a bus model."""

import itertools
import random

__all__ = ["pauses"]


def pauses(seed, odds):
    """An endless sequence of bools, each True with probability ``odds``."""
    rng = random.Random(seed)
    return (rng.random() < odds for _ in itertools.count())
