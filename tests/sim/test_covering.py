"""Random products on the simulated hardware of each covering Config: results and cycles."""

import pytest
from covering import CONFIGS
from tooling import load

SEED = 8


@pytest.fixture(scope="module")
def sweep():
    return load("sweep")


# In reverse order: another worker builds the same models for test_cycles.py in order.
@pytest.mark.parametrize("number", range(len(CONFIGS))[::-1])
def test_products_are_correct(sweep, number):
    problem = sweep.run_products(CONFIGS[number], [SEED, number])
    assert not problem, f"{CONFIGS[number]}\n{problem}"
