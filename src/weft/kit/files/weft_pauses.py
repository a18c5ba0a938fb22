"""Random pauses for the channels of bus models."""

import itertools
import random


def pauses(seed, probability):
    """For each cycle, whether a channel pauses."""
    rng = random.Random(seed)
    return (rng.random() < probability for _ in itertools.count())
