"""The cells of an ECP5, after synthesis and after routing, compared with the models of Yosys."""

import random

import pytest

INPUTS = dict.fromkeys((
    *"ABCD", "FCI", "WD", "WAD0", "WAD1", "WAD2", "WAD3", "WRE", "WCK",
), 1)
FLIP_FLOP = dict.fromkeys(("CLK", "LSR", "CE", "DI", "M"), 1)
RAM = {"DI": 4, "WAD": 4, "RAD": 4, "WRE": 1, "WCK": 1}
SETTINGS = ('"1"', '"0"', '"CE"', '"INV"')


def luts(verdict, mode, **options):
    rng = random.Random(3)
    modes = [
        {
            "MODE": f'"{mode}"', "INITVAL": f"16'd{rng.randrange(1 << 16)}",
            "CCU2_INJECT1": rng.choice(('"YES"', '"NO"')),
        }
        for _ in range(24)
    ]
    return verdict(
        "ecp5", "TRELLIS_COMB", INPUTS, {"F": 1}, modes, clocks=("WCK",), **options
    )


def flip_flops(verdict, **options):
    modes = [
        {
            "CEMUX": ce, "CLKMUX": clk, "LSRMUX": lsr, "SRMODE": mode, "REGSET": start,
        }
        for ce in SETTINGS for clk in ('"CLK"', '"INV"') for lsr in ('"LSR"', '"INV"')
        for mode in ('"LSR_OVER_CE"', '"ASYNC"') for start in ('"SET"', '"RESET"')
    ]
    return verdict("ecp5", "TRELLIS_FF", FLIP_FLOP, {"Q": 1}, modes, clocks=("CLK",), **options)


def memory(verdict, **options):
    rng = random.Random(4)
    modes = [
        {"INITVAL": f"64'd{rng.randrange(1 << 64)}", "WCKMUX": clk, "WREMUX": write}
        for clk in ('"WCK"', '"INV"') for write in ('"WRE"', '"INV"')
    ]
    return verdict("ecp5", "TRELLIS_DPR16X4", RAM, {"DO": 4}, modes, clocks=("WCK",), **options)


def test_synthesized_logic_equals_yosys(verdict):
    modes = [{"INIT": 1 << n} for n in range(16)]
    assert verdict("ecp5", "LUT4", dict.fromkeys("ABCD", 1), {"Z": 1}, modes) == "EQUAL"


def logic(verdict, **options):
    return luts(verdict, "LOGIC", **options)


def column(verdict, **options):
    return luts(verdict, "DPRAM", **options)


def carry(verdict, **options):
    return luts(verdict, "CCU2", **options)


@pytest.mark.parametrize("test", [logic, column, carry, flip_flops, memory])
def test_cells_equal_yosys(verdict, test):
    assert test(verdict) == "EQUAL"


@pytest.mark.parametrize("test, right, wrong", [
    (logic, "INITVAL[{D, C, B, A}]", "INITVAL[{D, C, A, B}]"),
    (column, "memory[{A, C, B, D}]", "memory[{D, C, B, A}]"),
    (carry, "no_carry ? f", "!no_carry ? f"),
    (
        flip_flops, "if (reset) state <= START;\n                else",
        "if (reset) state <= 1;\nelse",
    ),
    (flip_flops, 'CE ^ (CEMUX == "INV")', "CE"),
    (flip_flops, "reg state = START", "reg state = 0"),
    (memory, "memory[{RAD, 2'b00}", "memory[{WAD, 2'b00}"),
])
def test_a_wrong_model_is_found(verdict, test, right, wrong):
    assert "WRONG" in test(verdict, fix=(right, wrong))
