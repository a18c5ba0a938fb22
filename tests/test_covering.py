"""The covering Configs have every legal pair of settings, the quick ones every setting."""

import numpy as np
import pytest
from covering import CONFIGS, QUICK, SLOW, pairs, settings

from weft.regress.case import random_config

SEED, DRAWN = 31, 400


@pytest.mark.slow
def test_every_pair_is_covered():
    covered = set().union(*map(pairs, CONFIGS))
    rng = np.random.default_rng(SEED)
    legal = set().union(*(pairs(random_config(rng)) for _ in range(DRAWN)))
    assert legal - covered == set()


def test_every_config_is_needed():
    for config in CONFIGS:
        others = set().union(*(pairs(other) for other in CONFIGS if other != config))
        assert not pairs(config) <= others, config


def test_every_setting_is_in_a_quick_config():
    every, quick = (
        {setting for config in configs for setting in settings(config).items()}
        for configs in (CONFIGS, QUICK)
    )
    assert every - quick == set()


def test_seven_of_ten_pairs_are_not_long():
    every, most = (set().union(*map(pairs, configs)) for configs in (CONFIGS, QUICK + SLOW))
    assert len(most) >= 0.7 * len(every)
