"""The multiplier with all of its registers: the block and its twin."""

import random

import pytest
from amaranth.hdl import signed, unsigned
from tiers import quick

from verif.amaranth_bench import play
from verif.primitives import exhaustive_check, prove_equal
from weft.hw.arith.gowin import GowinMultiplier
from weft.hw.arith.multiplier import HalvedMultiplier, Multiplier
from weft.sim.primitives import ECP5_MODELS, GOWIN_MODELS

SHAPES = [
    (signed(9), signed(9)), (signed(8), signed(8)), (signed(18), unsigned(18)),
    (unsigned(16), unsigned(16)), (unsigned(1), signed(3)),
]


def operand(rng, shape):
    low = -(1 << shape.width - 1) if shape.signed else 0
    high = low + (1 << shape.width) - 1
    return rng.choice([low, high, rng.randint(low, high)])


@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("a, b", SHAPES, ids=str)
def test_products_come_after_the_latency_in_steps(a, b, pipelined):
    latency = Multiplier.LATENCY if pipelined else Multiplier.LATENCY - 1
    rng = random.Random(1)
    script = [
        {
            "a": operand(rng, a), "b": operand(rng, b), "zero": int(rng.random() < 0.2),
            "en": int(rng.random() < 0.7),
        }
        for _ in range(200)
    ]
    multiplier = Multiplier(a=a, b=b, pipelined=pipelined)
    (found,) = play(multiplier, script, "product", tail=1)
    products = []
    for t, cycle in enumerate(script):
        if cycle["en"]:
            products.append(0 if cycle["zero"] else cycle["a"] * cycle["b"])
        if len(products) >= latency:
            assert found[t + 1] == products[-latency]


def test_en_is_1_by_default():
    (found,) = play(Multiplier(a=signed(9), b=signed(9)), [{"a": -7, "b": 5}], "product", tail=3)
    assert found == [0, 0, 0, -35]


@pytest.mark.parametrize("width", [8, pytest.param(9, marks=pytest.mark.slow)])
def test_the_block_multiplies_all_operands(width):
    assert exhaustive_check(Multiplier, width=width) == "PASS"


@pytest.mark.parametrize("a, b, pipelined", quick(1, [
    (signed(4), unsigned(3), True), (unsigned(4), unsigned(4), False),
    (unsigned(4), signed(4), True),
]), ids=str)
def test_the_block_equals_its_twin(a, b, pipelined):
    """With and without ``en`` and ``zero``."""
    prove_equal(Multiplier(a=a, b=b, pipelined=pipelined), steps=Multiplier.LATENCY + 1)


@pytest.mark.parametrize("line", quick(1, [
    "b_reg <= {SIGNEDB & b[17], b};", "if (CE0) begin", "pipeline_reg <= product;",
    'if (REG_INPUTA_RST == "RST0" ? RST0 : RST1) a_reg <= 0;',
]))
def test_a_changed_block_is_detected(line):
    broken = {"if (CE0) begin": "begin"}.get(line, "")
    models = ECP5_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    with pytest.raises(AssertionError, match="proof did fail"):
        multiplier = Multiplier(a=signed(3), b=signed(3))
        prove_equal(multiplier, steps=4, models=models.replace(line, broken))


@pytest.mark.parametrize("kind, width", [(GowinMultiplier, 9), (HalvedMultiplier, 8)])
def test_the_multipliers_of_gowin_multiply_all_operands(kind, width):
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert exhaustive_check(kind, width=width, models=models) == "PASS"


@pytest.mark.parametrize("kind, a, b", quick(2, [
    (GowinMultiplier, signed(4), signed(3)), (HalvedMultiplier, signed(4), unsigned(3)),
    (HalvedMultiplier, unsigned(4), signed(4)),
]), ids=str)
@pytest.mark.parametrize("pipelined", [True, False])
def test_the_multipliers_of_gowin_equal_their_twin(kind, a, b, pipelined):
    """With and without ``en`` and ``zero``."""
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    prove_equal(kind(a=a, b=b, pipelined=pipelined), steps=Multiplier.LATENCY + 1, models=models)


@pytest.mark.parametrize("line, broken", quick(1, [
    ("{BSIGN & B[8], B}", "{1'b0, B}"), ("if (CE) begin", "begin"), ("a_reg <= a;", ""),
    ("pipe_reg <= product;", ""),
]))
def test_a_changed_block_of_gowin_is_detected(line, broken):
    """All bits of B count: with fewer ones, its sign changes no bit of the product."""
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    with pytest.raises(AssertionError, match="proof did fail"):
        multiplier = GowinMultiplier(a=signed(3), b=signed(9))
        prove_equal(multiplier, steps=4, models=models.replace(line, broken))
