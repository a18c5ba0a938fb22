"""Random products on the simulated hardware of each covering Config: results and cycles."""

import pytest
from covering import CASES, QUICK

from weft.regress.check import run_products

SEED = 8


# In reverse order: another worker builds the same models for test_cycles.py in order.
@pytest.mark.parametrize("config", [
    pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
    if case.values[0] in QUICK[3:] else case for case in CASES[::-1]
])
def test_products_are_correct(config):
    problem = run_products(config, SEED)
    assert not problem, f"{config}\n{problem}"
