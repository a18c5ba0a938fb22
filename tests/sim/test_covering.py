"""Random products on the simulated hardware of each covering Config: results and cycles."""

import pytest
from covering import CASES, CONFIGS
from tooling import load

SEED = 8


@pytest.fixture(scope="module")
def sweep():
    return load("sweep")


# In reverse order: another worker builds the same models for test_cycles.py in order.
@pytest.mark.parametrize("config", CASES[::-1])
def test_products_are_correct(sweep, config):
    problem = sweep.run_products(config, [SEED, CONFIGS.index(config)])
    assert not problem, f"{config}\n{problem}"
