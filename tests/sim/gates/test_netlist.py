"""Translation of a netlist to Verilog, and the errors for cells without a model."""

import json
import re

import pytest
from rejects import rejects

from weft.boards import pll
from weft.sim.gates import UnsupportedCell, verilog

PINS = {"clk": "clock", "rx": "rx", "tx": "tx"}


def ports(**bits):
    way = {"tx": "output"}
    return {
        name: {"direction": way.get(name, "input"), "bits": [bit]} for name, bit in bits.items()
    }


def text(folder, family, cells, seed=1, more=()):
    module = {
        "ports": ports(clock=2, rx=3, tx=4, **dict(more)),
        "cells": {
            name: {"type": kind, "parameters": parameters, "connections": connections}
            for name, (kind, parameters, connections) in cells.items()
        },
    }
    path = folder / "netlist.json"
    path.write_text(json.dumps({"modules": {"top": module}}), encoding="utf-8")
    return verilog(path, family, PINS, seed=seed)


def instance(whole, name):
    """Parameters and pins of a cell."""
    line = next(line for line in whole.splitlines() if f"\\{name} (" in line)
    return dict(re.findall(r"\.(\w+)\(([^()]*)\)", line))


def test_pins_and_cells_are_wired(tmp_path):
    lut = {"A": [3], "B": ["1"], "C": ["0"], "D": [2], "Z": [4]}
    cells = {"l": ("LUT4", {"INIT": "1010101010101010"}, lut)}
    found = text(tmp_path, "ecp5", cells, more=[("n", 9)])
    assert instance(found, "l") == {
        "INIT": "16'b1010101010101010", "A": "n3", "B": "1'b1", "C": "1'b0", "D": "n2", "Z": "n4",
    }
    for line in ("assign n2 = clk;", "assign n3 = rx;", "assign tx = n4;", "assign n9 = 0;"):
        assert line in found.splitlines()


def test_buses_and_texts(tmp_path):
    cells = {
        "m": ("TRELLIS_DPR16X4", {"WCKMUX": "INV"}, {"DI": [5, 6, "0", 7], "DO": [4, "x", 8, 9]}),
        "f": ("TRELLIS_FF", {"CEMUX": "1 ", "GSR": "DISABLED"}, {"Q": [4], "CLK": [2]}),
    }
    found = text(tmp_path, "ecp5", cells)
    assert "#(.WCKMUX(\"INV\")) \\m (.DI({n7, 1'b0, n6, n5})" in found
    assert '#(.CEMUX("1")) \\f (.CLK(n2), .LSR(1\'b0)' in found


@pytest.mark.parametrize("clock, output", [(125, "CLKOP"), (105, "CLKOS")])
def test_both_outputs_of_a_pll(tmp_path, clock, output):
    settings = {
        name: f"{value:032b}" if isinstance(value, int) else f"{value} "
        for name, value in pll.ecp5(25, clock).parameters.items()
    }
    assert ("CLKOS_DIV" in settings) == (output == "CLKOS")
    pins = {"CLKI": [2], "CLKFB": [5], "CLKOP": [5], "LOCK": [6]} | {output: [4]}
    found = instance(text(tmp_path, "ecp5", {"p": ("EHXPLLL", settings, pins)}), "p")
    assert found[output] == "n4" and found["CLKOP_DIV"]


@pytest.mark.parametrize("family, kind, port, mux, value", [
    ("ice40", "ICESTORM_LC", "CEN", None, "1'b1"),
    ("ice40", "ICESTORM_LC", "SR", None, "1'b0"),
    ("ice40", "ICESTORM_DSP", "CE", None, "1'b1"),
    ("ecp5", "TRELLIS_COMB", "A", None, "1'b1"),
    ("ecp5", "MULT18X18D", "A0", "0 ", "1'b0"),
    ("ecp5", "DP16KD", "CEA", "CEA", "1'b1"),
    ("ecp5", "DP16KD", "CSA0", "INV", "1'b0"),
])
def test_what_is_not_connected(tmp_path, family, kind, port, mux, value):
    parameters = {f"{port}MUX": mux} if mux else {}
    found = text(tmp_path, family, {"c": (kind, parameters, {port: []})})
    assert instance(found, "c")[port] == value


def test_a_multiplexer_inverts(tmp_path):
    found = text(tmp_path, "ecp5", {"c": ("DP16KD", {"WEBMUX": "INV"}, {"WEB": [3]})})
    assert instance(found, "c")["WEB"] == "~n3"


RESETS = {"REG_INPUTA_RST": "RST2", "REG_INPUTB_RST": "RST1", "REG_OUTPUT_RST": "RST1"}


def test_any_two_resets_of_a_multiplier(tmp_path):
    """RST0 belongs to another multiplier of the group."""
    pins = {"RST0": [7], "RST1": [3], "RST2": [5], "RST3": []}
    found = instance(text(tmp_path, "ecp5", {"m": ("MULT18X18D", RESETS, pins)}), "m")
    assert (found["RST0"], found["RST1"]) == ("n3", "n5")
    assert [found[key] for key in RESETS] == ['"RST1"', '"RST0"', '"RST0"']


def test_a_multiplier_without_parameters_keeps_its_resets(tmp_path):
    cells = {"m": ("MULT18X18D", {}, {"RST0": [5], "RST1": [3]})}
    found = instance(text(tmp_path, "ecp5", cells), "m")
    assert (found["RST0"], found["RST1"]) == ("n5", "n3")


def test_what_is_left_open_is_noise(tmp_path):
    cells = {
        "c": ("CCU2C", {"INIT0": "x" * 16}, {"CIN": ["x"], "COUT": ["x"], "A0": ["x"]}),
        "r": ("ICESTORM_RAM", {"INIT_7": "x" * 256}, {}),
    }
    found = {
        text(tmp_path, "ecp5", {"c": cells["c"]}, seed) + text(tmp_path, "ice40", {"r": cells["r"]})
        for seed in range(8)
    }
    assert len(found) == 8
    assert {instance(one, "c")["COUT"] for one in found} == {""}
    assert {instance(one, "c")["CIN"] for one in found} == {"1'b0", "1'b1"}


def test_a_pll_has_the_wires_of_the_chip(tmp_path):
    """From the clock pin, and to the buffer whose input is not connected in the netlist."""
    cells = {
        "p": ("ICESTORM_PLL", {}, {"LOCK": [7], "RESETB": [8]}),
        "b": ("SB_GB", {}, {"USER_SIGNAL_TO_GLOBAL_BUFFER": [], "GLOBAL_BUFFER_OUTPUT": [9]}),
        "o": ("SB_GB", {}, {"USER_SIGNAL_TO_GLOBAL_BUFFER": [7], "GLOBAL_BUFFER_OUTPUT": [8]}),
    }
    found = text(tmp_path, "ice40", cells)
    assert instance(found, "p")["REFERENCECLK"] == "n2"
    assert instance(found, "p")["PLLOUT_A"] == "npll"
    assert instance(found, "b")["USER_SIGNAL_TO_GLOBAL_BUFFER"] == "npll"
    assert instance(found, "o")["USER_SIGNAL_TO_GLOBAL_BUFFER"] == "n7"


def test_a_pll_behind_a_buffer_has_its_pin_before_it(tmp_path):
    cells = {
        "p": ("ICESTORM_PLL", {}, {"REFERENCECLK": [8], "RESETB": [7]}),
        "b": ("SB_GB", {}, {"USER_SIGNAL_TO_GLOBAL_BUFFER": [], "GLOBAL_BUFFER_OUTPUT": [9]}),
        "i": ("SB_GB", {}, {"USER_SIGNAL_TO_GLOBAL_BUFFER": [], "GLOBAL_BUFFER_OUTPUT": [8]}),
    }
    found = text(tmp_path, "ice40", cells)
    assert instance(found, "p")["REFERENCECLK"] == "n8"
    assert instance(found, "i")["USER_SIGNAL_TO_GLOBAL_BUFFER"] == "n2"
    assert instance(found, "b")["USER_SIGNAL_TO_GLOBAL_BUFFER"] == "npll"


@pytest.mark.parametrize("cell, problem", [
    (("PFUMX", {}, {}), "no simulation model for cell type PFUMX, of cell c"),
    (("LUT4", {"MORE": "1"}, {}),
     "the simulation model of LUT4 has no parameter MORE, which cell c sets"),
    (("LUT4", {}, {"E": [3]}),
     "the simulation model of LUT4 has no port E, which cell c connects"),
    (("MULT18X18D", RESETS | {"REG_INPUTB_RST": "RST0"}, {}),
     "the simulation model of MULT18X18D has two resets, and cell c uses RST0, RST1, RST2"),
])
def test_rejects_what_has_no_model(tmp_path, cell, problem):
    with rejects(UnsupportedCell, problem):
        text(tmp_path, "ecp5", {"c": cell})


def test_rejects_a_pin_that_is_none(tmp_path):
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps({"modules": {"top": {"ports": ports(clk=2), "cells": {}}}}))
    with pytest.raises(ValueError, match="^a pin must be one of clk, not 'clock'$"):
        verilog(path, "ice40", {"clk": "clock"}, seed=1)
