"""Copies of operand registers: PEs of a row, or beside squares, have their own ones."""

import itertools
import json

import pytest
from netlist_cells import flip_flop, lut

from weft.boards.devices import DEVICES
from weft.boards.operand_copies import copy_operands


def block(a, b):
    return {
        "type": "MULT18X18D", "attributes": {},
        "port_directions": {"A0": "input", "B0": "input", "C0": "input", "P0": "output"},
        "connections": {"A0": [a], "B0": [b], "C0": ["x"], "P0": ["x"]},
    }


# Bits 10 and 11 feed both PEs through LUTs, and the corrections. Bit 10 also feeds the register of
# bit 12, which feeds a block of each PE without a LUT between.
CELLS = {
    "a": flip_flop(3, 10), "b": flip_flop(4, 11), "next": flip_flop(10, 12),
    "add_0": lut(10, 11, 20), "add_1": lut(10, 30, 21), "carry_1": lut(11, 10, 30),
    "corrections": lut(10, 11, 31), "unused": lut(10, 11, "x"),
    "block_0": block(20, 12), "block_1": block(21, 12),
}
ROW = {"block_0": (0, 4), "block_1": (0, 5)}


def copied(tmp_path, pes, **options):
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": CELLS}, "empty": {"cells": {}}}}))
    count = copy_operands(path, pes, **options)
    cells = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert len(cells) == len(CELLS) + count
    return {name: cell["connections"] for name, cell in cells.items()}


def test_each_pe_has_its_own_copy(tmp_path):
    found = copied(tmp_path, ROW)
    names = {f"{name}_copy_0_{column}" for name in ("a", "b") for column in (4, 5)}
    assert set(found) - set(CELLS) == names
    for name in ("a", "b"):
        for column in (4, 5):
            assert found[f"{name}_copy_0_{column}"]["DI"] == CELLS[name]["connections"]["DI"]
    [left], [right] = (found[f"a_copy_0_{column}"]["Q"] for column in (4, 5))
    assert found["add_0"]["A"] == [left]
    assert found["add_1"]["A"] == found["carry_1"]["B"] == [right]
    assert found["add_0"]["B"] == found["b_copy_0_4"]["Q"]
    assert found["carry_1"]["A"] == found["b_copy_0_5"]["Q"]
    assert len({10, 11, 12, left, right, *found["b_copy_0_4"]["Q"]}) == 6


def test_other_loads_keep_the_register(tmp_path):
    found = copied(tmp_path, ROW)
    for name in ("a", "b", "next", "corrections", "unused"):
        assert found[name] == CELLS[name]["connections"]


def test_several_rows_have_no_copies(tmp_path):
    assert set(copied(tmp_path, {"block_0": (0, 4), "block_1": (1, 4)})) == set(CELLS)
    assert set(copied(tmp_path, {})) == set(CELLS)


def test_the_flow_of_an_ecp5_makes_the_copies(tmp_path):
    cells = {"a": flip_flop(3, 10)}
    for column in range(1, 15):
        cells[f"pe_0_{column}.add"] = lut(10, 11, 100 + column)
        cells |= {
            f"pe_0_{column}.product_{n}.block": block(100 + column, 12) for n in range(8)
        }
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {}}}}))
    device = DEVICES["LFE5U-85F"]
    device.flow.improve(path, device)
    found = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert set(found) - set(cells) == {f"a_copy_0_{column}" for column in range(1, 15)}


def test_beside_squares_a_pe_with_dsp_blocks_has_copies_in_each_row(tmp_path):
    found = copied(tmp_path, {"block_0": (0, 4), "block_1": (1, 4)}, squares=True)
    assert set(found) - set(CELLS) == {
        f"{name}_copy_{row}_4" for name in ("a", "b") for row in (0, 1)
    }
    # The other loads of the registers are reason enough for a copy.
    found = copied(tmp_path, {"block_0": (0, 4)}, squares=True)
    assert set(found) - set(CELLS) == {"a_copy_0_4", "b_copy_0_4"}
    assert found["add_0"]["A"] == found["a_copy_0_4"]["Q"]
    assert found["add_1"]["A"] == CELLS["add_1"]["connections"]["A"]


@pytest.mark.parametrize("kind", ["DP16KD", "LUT4"])
def test_the_flow_of_an_ecp5_copies_beside_squares(kind, tmp_path):
    cells = {f"a_{row}": flip_flop(3, 10 + row) for row in range(8)}
    other = {"type": kind, "attributes": {}, "connections": {}, "port_directions": {},
             "parameters": {}}
    for row, column in itertools.product(range(8), range(3)):
        cells[f"pe_{row}_{column}.add"] = lut(10 + row, 20, 100 + 3 * row + column)
        for n in range(4):
            name = f"product_{n}.block"
            cells[f"pe_{row}_{column}.{name}"] = block(100 + 3 * row + column, 21)
            cells[f"pe_{row}_{column + 3}.{name}"] = other
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {}}}}))
    device = DEVICES["LFE5U-85F"]
    device.flow.improve(path, device)
    found = json.loads(path.read_text())["modules"]["top"]["cells"]
    copies = itertools.product(range(8), range(3)) if kind == "DP16KD" else ()
    assert {name for name in found if "copy" in name} == {
        f"a_{row}_copy_{row}_{column}" for row, column in copies
    }
