"""The Configs of the quick tests hold every pair of settings that a legal Config can have."""

import numpy as np
from covering import CONFIGS, pairs

from weft.sim.configs import random_config

SEED, DRAWN = 31, 400


def test_each_pair_of_settings_is_in_one_of_them():
    covered = set().union(*map(pairs, CONFIGS))
    rng = np.random.default_rng(SEED)
    for _ in range(DRAWN):
        config = random_config(rng)
        assert pairs(config) <= covered, (config, pairs(config) - covered)


def test_each_of_them_is_needed():
    for config in CONFIGS:
        others = set().union(*(pairs(other) for other in CONFIGS if other != config))
        assert not pairs(config) <= others, config
