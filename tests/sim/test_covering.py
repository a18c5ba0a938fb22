"""Random products on the simulated hardware of each covering Config: results and cycles."""

import importlib.util
from pathlib import Path

import pytest
from covering import CONFIGS

TOOL = Path(__file__).parent.parent.parent / "tools" / "sweep.py"
SEED = 8


@pytest.fixture(scope="module")
def sweep():
    spec = importlib.util.spec_from_file_location("sweep", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# From the last one back: another worker builds the same models for the cycle model, from the first.
@pytest.mark.parametrize("number", reversed(range(len(CONFIGS))))
def test_products_are_right(sweep, number):
    wrong = sweep.multiplied(CONFIGS[number], [SEED, number])
    assert not wrong, f"{CONFIGS[number]}\n{wrong}"
