"""The cells of a Gowin FPGA after synthesis, compared with the models of Yosys."""

import random

import pytest

PINS = {
    "DFF": ("CLK", "D"), "DFFE": ("CLK", "D", "CE"), "DFFR": ("CLK", "D", "RESET"),
    "DFFRE": ("CLK", "D", "CE", "RESET"), "DFFS": ("CLK", "D", "SET"),
    "DFFSE": ("CLK", "D", "CE", "SET"),
}
RAM = {"DI": 4, "WAD": 4, "RAD": 4, "WRE": 1, "CLK": 1}


def luts(verdict, **options):
    rng = random.Random(5)
    modes = [{"INIT": f"16'd{rng.randrange(1 << 16)}"} for _ in range(16)]
    inputs = dict.fromkeys(("I0", "I1", "I2", "I3"), 1)
    return verdict("gowin", "LUT4", inputs, {"F": 1}, modes, **options)


def alus(verdict, **options):
    inputs = dict.fromkeys(("I0", "I1", "I3", "CIN"), 1)
    modes = [{"ALU_MODE": mode} for mode in range(3)]
    return verdict("gowin", "ALU", inputs, {"SUM": 1, "COUT": 1}, modes, **options)


def flip_flops(verdict, kind="DFFRE", **options):
    modes = [{"INIT": f"1'b{start}"} for start in (0, 1)]
    inputs = dict.fromkeys(PINS[kind], 1)
    return verdict("gowin", kind, inputs, {"Q": 1}, modes, clocks=("CLK",), **options)


def memory(verdict, **options):
    rng = random.Random(6)
    mode = {f"INIT_{n}": f"16'd{rng.randrange(1 << 16)}" for n in range(4)}
    return verdict("gowin", "RAM16SDP4", RAM, {"DO": 4}, [mode], clocks=("CLK",), **options)


@pytest.mark.parametrize("test", [luts, alus, memory])
def test_cells_equal_yosys(verdict, test):
    assert test(verdict) == "EQUAL"


@pytest.mark.parametrize("kind", PINS)
def test_flip_flops_equal_yosys(verdict, kind):
    assert flip_flops(verdict, kind) == "EQUAL"


@pytest.mark.parametrize("test, right, wrong", [
    (luts, "INIT[{I3, I2, I1, I0}]", "INIT[{I3, I2, I0, I1}]"),
    (alus, "ALU_MODE == 2 && !I3", "ALU_MODE == 2 && I3"),
    (alus, "propagate ? CIN : I0", "propagate ? CIN : I1"),
    (flip_flops, "if (FORCE) q", "if (CE && FORCE) q"),
    (memory, "column_1[WAD], column_0[WAD]} <= DI", "column_0[WAD], column_1[WAD]} <= DI"),
])
def test_a_changed_cell_is_detected(verdict, test, right, wrong):
    assert test(verdict, fix=(right, wrong)).endswith("WRONG")
