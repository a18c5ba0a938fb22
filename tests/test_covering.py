"""The Configs of the quick tests cover every legal pair of settings."""

import numpy as np
from covering import CONFIGS, pairs

from verif.configs import random_config

SEED, DRAWN = 31, 400


def test_every_pair_is_covered():
    covered = set().union(*map(pairs, CONFIGS))
    rng = np.random.default_rng(SEED)
    for _ in range(DRAWN):
        config = random_config(rng)
        assert pairs(config) <= covered, (config, pairs(config) - covered)


def test_every_config_is_needed():
    for config in CONFIGS:
        others = set().union(*(pairs(other) for other in CONFIGS if other != config))
        assert not pairs(config) <= others, config
