"""The multiplier in logic: its carry chains with all operands, and against its twin."""

import random

import pytest
from amaranth.hdl import signed
from tiers import quick

from verif.amaranth_bench import play
from verif.primitives import exhaustive_check, prove_equal
from weft.hw.arith import ecp5
from weft.hw.arith.ecp5 import LogicMultiplier
from weft.sim.primitives import ECP5_MODELS


@pytest.mark.parametrize("width", [8, pytest.param(9, marks=pytest.mark.long)])
def test_carry_chains_multiply_all_operands(width):
    assert exhaustive_check(LogicMultiplier, width=width) == "PASS"


@pytest.mark.parametrize("a, b", quick(2, [(2, 8), (3, 9), (2, 9)]))
def test_carry_chains_equal_their_twin(a, b):
    """With and without ``zero``."""
    prove_equal(LogicMultiplier(a=signed(a), b=signed(b)), steps=LogicMultiplier.LATENCY + 1)


@pytest.mark.parametrize("width", [8, 9])
def test_products_come_after_the_latency(width):
    rng = random.Random(width)
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    script = [
        {
            "a": rng.choice([low, high, rng.randint(low, high)]),
            "b": rng.choice([low, high, rng.randint(low, high)]), "zero": n % 5 == 3,
        }
        for n in range(100)
    ]
    multiplier = LogicMultiplier(a=signed(width), b=signed(width))
    (found,) = play(multiplier, script, "product", tail=LogicMultiplier.LATENCY)
    expected = [0 if cycle["zero"] else cycle["a"] * cycle["b"] for cycle in script]
    assert found[LogicMultiplier.LATENCY :] == expected


@pytest.mark.slow
@pytest.mark.parametrize("name, width", [
    ("SUB_MASKED", 9), ("AND", 8), ("ADD_PRODUCTS", 8), ("SUB_PRODUCTS", 8), ("ADD", 9),
])
def test_a_changed_function_is_detected(name, width, monkeypatch):
    monkeypatch.setattr(ecp5, name, getattr(ecp5, name) ^ 0x2000)
    assert exhaustive_check(LogicMultiplier, width=width).startswith("FAIL")


def test_a_lost_carry_is_detected():
    models = ECP5_MODELS.read_text(encoding="utf-8").replace("CO = f ? CI :", "CO = f ? 0 :")
    assert exhaustive_check(LogicMultiplier, width=8, models=models).startswith("FAIL")
