"""Unused carries are disconnected, and used ones are kept."""

import json

import pytest

from weft.boards.carry_chains import drop_unused_carries

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
