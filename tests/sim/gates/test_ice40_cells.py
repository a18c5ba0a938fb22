"""The cells of a routed iCE40, compared with the models of Yosys."""

import random

import pytest

LOGIC = dict.fromkeys(("I0", "I1", "I2", "I3", "CIN", "CLK", "CEN", "SR"), 1)
MEMORY = dict.fromkeys((
    "RCLK", "RCLKE", "RE", "WCLK", "WCLKE", "WE",
    *(f"{bus}_{n}" for bus in ("RADDR", "WADDR") for n in range(11)),
    *(f"{bus}_{n}" for bus in ("WDATA", "MASK") for n in range(16)),
), 1)
WORD = dict.fromkeys((f"RDATA_{n}" for n in range(16)), 1)


def logic_cells(rng):
    """Each kind of flip-flop and no flip-flop, with and without the start of a carry chain."""
    for n in range(48):
        yield {
            "LUT_INIT": rng.randrange(1 << 16), "DFF_ENABLE": n & 1, "SET_NORESET": n >> 1 & 1,
            "ASYNC_SR": n >> 2 & 1, "NEG_CLK": n >> 3 & 1, "CARRY_ENABLE": rng.randrange(2),
            "CIN_CONST": rng.randrange(2), "CIN_SET": rng.randrange(2),
        }


def logic(verdict, **options):
    outputs = dict.fromkeys(("LO", "O", "COUT"), 1)
    modes = list(logic_cells(random.Random(1)))
    options = {"clocks": ("CLK",), "rare": ("SR",), **options}
    return verdict("ice40", "ICESTORM_LC", LOGIC, outputs, modes, **options)


def memory(verdict, **options):
    """All pairs of widths, with initial values; a word is never read while it is written."""
    rng = random.Random(2)
    modes = [
        {
            "WRITE_MODE": write, "READ_MODE": read, "NEG_CLK_W": rng.randrange(2),
            "NEG_CLK_R": rng.randrange(2),
            **{f"INIT_{n:X}": f"256'h{rng.randrange(1 << 256):x}" for n in range(16)},
        }
        for write in range(4) for read in range(4)
    ]
    return verdict(
        "ice40", "ICESTORM_RAM", MEMORY, WORD, modes, clocks=("RCLK", "WCLK"),
        apart=[("WADDR_0", "RADDR_0")], steps=900, **options,
    )


def test_logic_equals_yosys(verdict):
    assert logic(verdict) == "EQUAL"


@pytest.mark.slow
def test_memory_equals_yosys(verdict):
    assert memory(verdict) == "EQUAL"


@pytest.mark.slow
@pytest.mark.parametrize("right, wrong", [
    ("{I3, I2, I1, I0}", "{I2, I3, I1, I0}"),
    ("(I1 ^ I2) & carry", "(I0 ^ I1) & carry"),
    ("if (CEN) state <= SR ?", "if (CEN | SR) state <= SR ?"),
    ("CLK ^ NEG_CLK", "CLK"),
    ("posedge SR", "negedge SR"),
])
def test_a_wrong_logic_model_is_found(verdict, right, wrong):
    assert "WRONG" in logic(verdict, fix=(right, wrong))


@pytest.mark.long
@pytest.mark.parametrize("right, wrong", [
    ("!mask[k]", "mask[k]"),
    ("k - READ_PIN + part % READ_STEP", "k"),
    *(pytest.param(*bug, marks=pytest.mark.long) for bug in (
        ("(WRITE_STEP >> 1) - 1", "0"), ("RE & RCLKE", "RE"),
        ("init[16 * n +: 16]", "init[16 * (255 - n) +: 16]"),
    )),
])
def test_a_wrong_memory_model_is_found(verdict, right, wrong):
    assert "WRONG" in memory(verdict, fix=(right, wrong))
