"""Random products on the simulated hardware of each covering Config: results and cycles."""


import pytest
from covering import CONFIGS
from tooling import load

SEED = 8


@pytest.fixture(scope="module")
def sweep():
    return load("sweep")


# From the last one back: another worker builds the same models for the cycle model, from the first.
@pytest.mark.parametrize("number", range(len(CONFIGS))[::-1])
def test_products_are_right(sweep, number):
    wrong = sweep.multiplied(CONFIGS[number], [SEED, number])
    assert not wrong, f"{CONFIGS[number]}\n{wrong}"
