"""Unused carries go. Each load of a copied register keeps its value, in the copy of its region."""

import copy
import json

import pytest
from netlist_cells import flip_flop, lut

from weft.boards.netlist_passes import copy_operands, copy_registers, drop_unused_carries


def block(address, data):
    return {
        "type": "DP16KD", "attributes": {}, "port_directions": {"ADA0": "input", "DOA0": "output"},
        "connections": {"ADA0": [address], "DOA0": [data]},
    }


# Three blocks in two regions. Registers: an address of all blocks; a selection of words, whose LUTs
# follow the blocks; a selection that the LUT of no block reads, too; one of a single region.
CELLS = {
    "address": flip_flop(3, 10), "select": flip_flop(4, 11), "used": flip_flop(5, 12),
    "one": flip_flop(6, 13),
    "left": block(10, 20), "left_2": block(10, 21), "right": block(10, 22),
    "and_left": lut(20, 11, 30), "and_left_2": lut(21, 12, 31), "and_right": lut(22, 11, 32),
    "or": lut(13, 20, 33), "far": lut(12, 33, 34), "and_used": lut(12, 22, 35),
}
REGIONS = {"left": 0, "left_2": 0, "right": 5}


def copied(tmp_path, cells, regions=REGIONS, ports=None):
    return changed_by(lambda path: copy_registers(path, regions), tmp_path, cells, ports)


def changed_by(copy_in, tmp_path, cells, ports=None):
    """The connections of all cells after a pass over the netlist."""
    path = tmp_path / "top.json"
    module = {"cells": copy.deepcopy(cells), "ports": ports or {}}
    path.write_text(json.dumps({"modules": {"top": module, "empty": {"cells": {}, "ports": {}}}}))
    count = copy_in(path)
    found = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert len(found) == len(cells) + count
    return {name: cell["connections"] for name, cell in found.items()}


def test_a_region_has_its_own_copy(tmp_path):
    found = copied(tmp_path, CELLS)
    assert set(found) - set(CELLS) == {"address_copy_5", "select_copy_5"}
    for name in ("address", "select"):
        original, twin = found[name], found[f"{name}_copy_5"]
        assert twin["CLK"] == original["CLK"] and twin["DI"] == original["DI"]
        assert original["Q"] == CELLS[name]["connections"]["Q"]
    address, select = (found[f"{name}_copy_5"]["Q"] for name in ("address", "select"))
    assert address[0] > 35 and select[0] > 35 and address != select
    assert found["right"]["ADA0"] == address and found["and_right"]["B"] == select
    changed = {"right", "and_right"}
    assert all(found[name] == CELLS[name]["connections"] for name in set(CELLS) - changed)


def test_a_register_of_an_output_has_no_copy(tmp_path):
    ports = {"out": {"direction": "output", "bits": [10]}}
    assert "address_copy_5" not in copied(tmp_path, CELLS, ports=ports)


def test_nothing_is_copied_without_regions(tmp_path):
    assert len(copied(tmp_path, CELLS, {})) == len(CELLS)


# Registers: an operand of three PEs; one of a PE and of a LUT elsewhere; one of a single PE.
def row_of_pes(row):
    return {
        "a": flip_flop(3, 10), "control": flip_flop(4, 11), "b": flip_flop(5, 12),
        "array.pe_0_0.add": lut(10, 12, 20), f"array.pe_{row}_2.add": lut(10, 11, 21),
        f"array.pe_{row}_10.add": lut(10, 12, 22), f"array.pe_{row}_10.and": lut(10, 11, 23),
        "far": lut(11, 20, 24),
    } | ({} if row else {"own": flip_flop(6, 13), "array.pe_0_2.or": lut(13, 13, 25)})


def test_each_pe_of_a_row_has_its_own_copy(tmp_path):
    cells = row_of_pes(0)
    found = changed_by(copy_operands, tmp_path, cells)
    assert set(found) - set(cells) == {"a_copy_2", "a_copy_10", "b_copy_10"}
    second, tenth = (found[f"a_copy_{column}"]["Q"] for column in (2, 10))
    assert found["array.pe_0_0.add"]["A"] == [10] and found["array.pe_0_2.add"]["A"] == second
    assert found["array.pe_0_10.add"]["A"] == found["array.pe_0_10.and"]["A"] == tenth
    assert found["array.pe_0_10.add"]["B"] == found["b_copy_10"]["Q"]
    assert found["far"] == cells["far"]["connections"]
    assert len({10, *second, *tenth}) == 3


@pytest.mark.parametrize("cells", [row_of_pes(1), CELLS], ids=["rows", "no PEs"])
def test_operands_of_other_arrays_have_no_copies(tmp_path, cells):
    assert len(changed_by(copy_operands, tmp_path, cells)) == len(cells)


SUM, STOP = 0x96AA, 0x000A  # LUTs of an adder; with D0 = 1, A0 is the carry


def cell(**changes):
    ports = {
        "CIN": ["0"], "COUT": [9], "S0": [7], "S1": [8],
        **{f"{name}{half}": [n + 10 * half] for half in (0, 1) for n, name in enumerate("ABCD", 1)},
    }
    table = changes.pop("table", SUM)
    ports |= changes
    outputs = ("COUT", "S0", "S1")
    return {
        "type": "CCU2C", "parameters": {"INIT0": f"{table:016b}"}, "connections": ports,
        "port_directions": {name: "output" if name in outputs else "input" for name in ports},
    }


def loosened(tmp_path, *cells, outputs=()):
    """(ports of the first cell, number of disconnected carries)."""
    path = tmp_path / "top.json"
    module = {
        "ports": {"y": {"direction": "output", "bits": list(outputs)}},
        "cells": {f"cell_{n}": one for n, one in enumerate(cells)},
    }
    path.write_text(json.dumps({"modules": {"top": module}}))
    count = drop_unused_carries(path)
    return json.loads(path.read_text())["modules"]["top"]["cells"]["cell_0"]["connections"], count


def test_an_unused_carry_output_is_disconnected(tmp_path):
    ports, count = loosened(tmp_path, cell())
    assert (ports["COUT"], ports["CIN"], count) == (["x"], ["0"], 1)


@pytest.mark.parametrize("reader", [{"outputs": [9]}, {"cells": [cell(CIN=[9], COUT=["x"])]}])
def test_a_used_carry_output_is_kept(tmp_path, reader):
    ports, count = loosened(
        tmp_path, cell(), *reader.get("cells", []), outputs=reader.get("outputs", [])
    )
    assert (ports["COUT"], count) == ([9], 0)


@pytest.mark.parametrize("constant", ["0", "1"])
def test_a_constant_without_effect_is_disconnected(tmp_path, constant):
    one = cell(table=STOP, D0=["1"], CIN=[constant], COUT=["x"])
    ports, count = loosened(tmp_path, one)
    assert (ports["CIN"], count) == (["x"], 1)


@pytest.mark.parametrize("changes, outputs", [
    ({"table": SUM}, []),  # it is added to the sum
    ({"table": STOP}, []),  # with D0 = 0, the carry is propagated
    ({"table": STOP, "D0": ["1"]}, [7]),  # the sum is read
    ({"table": STOP, "D0": ["1"], "CIN": [5]}, []),  # the carry input is not constant
])
def test_a_carry_input_with_effect_is_kept(tmp_path, changes, outputs):
    one = cell(**{"COUT": ["x"], **changes})
    ports, count = loosened(tmp_path, one, outputs=outputs)
    assert (ports["CIN"], count) == (one["connections"]["CIN"], 0)
