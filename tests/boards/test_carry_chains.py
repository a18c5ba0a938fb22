"""Ends of carry chains: let go where nobody needs them, and only there."""

import json

import pytest

from weft.boards.carry_chains import drop_unused_carries

SUM, STOP = 0x96AA, 0x000A  # of an adder; A0 is the carry where D0 is 1


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
    """Ports of the first cell, and how many were let go."""
    path = tmp_path / "top.json"
    module = {
        "ports": {"y": {"direction": "output", "bits": list(outputs)}},
        "cells": {f"cell_{n}": one for n, one in enumerate(cells)},
    }
    path.write_text(json.dumps({"modules": {"top": module}}))
    count = drop_unused_carries(path)
    return json.loads(path.read_text())["modules"]["top"]["cells"]["cell_0"]["connections"], count


def test_a_carry_that_nobody_reads_gets_no_net(tmp_path):
    ports, count = loosened(tmp_path, cell())
    assert (ports["COUT"], ports["CIN"], count) == (["x"], ["0"], 1)


@pytest.mark.parametrize("reader", [{"outputs": [9]}, {"cells": [cell(CIN=[9], COUT=["x"])]}])
def test_a_carry_that_is_read_stays(tmp_path, reader):
    ports, count = loosened(
        tmp_path, cell(), *reader.get("cells", []), outputs=reader.get("outputs", [])
    )
    assert (ports["COUT"], count) == ([9], 0)


@pytest.mark.parametrize("constant", ["0", "1"])
def test_a_constant_that_goes_nowhere_gets_no_net(tmp_path, constant):
    one = cell(table=STOP, D0=["1"], CIN=[constant], COUT=["x"])
    ports, count = loosened(tmp_path, one)
    assert (ports["CIN"], count) == (["x"], 1)


@pytest.mark.parametrize("changes, outputs", [
    ({"table": SUM}, []),  # it is added
    ({"table": STOP}, []),  # where D0 is 0 it goes through
    ({"table": STOP, "D0": ["1"]}, [7]),  # the sum has it
    ({"table": STOP, "D0": ["1"], "CIN": [5]}, []),  # it is no constant
])
def test_a_carry_that_counts_stays(tmp_path, changes, outputs):
    one = cell(**{"COUT": ["x"], **changes})
    ports, count = loosened(tmp_path, one, outputs=outputs)
    assert (ports["CIN"], count) == (one["connections"]["CIN"], 0)
