"""The floorplan of scalers: four neighbouring sites each, in a row that is otherwise free."""

import json
import re

import pytest

from weft.boards.devices import DEVICES

LARGE, SMALL = DEVICES["LFE5U-85F"], DEVICES["LFE5U-25F"]


def placed(tmp_path, *, device=LARGE, cols=3, scalers=8, parts=4):
    """Site (column of sites, row) and block of each multiplier of the scalers, by (lane, part)."""
    scaled = {
        f"core.output.rescaler.scaler_{lane}.product.part_{part}.block": (lane, part)
        for lane in range(scalers) for part in range(parts)
    }
    names = [
        f"core.array.pe_{row}_{col}.mac.product_{n}.block"
        for row in range(8) for col in range(cols) for n in range(4)
    ]
    unconnected = {"connections": {}, "port_directions": {}, "parameters": {}}
    cells = {
        name: {"type": "MULT18X18D", "attributes": {}, **unconnected}
        for name in [*names, *reversed(scaled)]
    }
    cells["core.output.rescaler.scaler_0.x"] = {
        "type": "LUT4", "attributes": {}, **unconnected,
    }
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {}}}}))
    device.flow.improve(path, device)
    cells = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert cells["core.output.rescaler.scaler_0.x"]["attributes"] == {}
    bels = [cell["attributes"].get("BEL") for cell in cells.values()]
    constrained = [bel for bel in bels if bel]
    assert len(set(constrained)) == len(constrained)
    return {key: cells[name]["attributes"].get("BEL") for name, key in scaled.items()}


def test_the_multipliers_of_a_scaler_share_a_group_in_the_free_row(tmp_path):
    columns, rows = LARGE.dsp_sites
    for (lane, part), bel in placed(tmp_path).items():
        x, y, block = map(int, re.fullmatch(r"X(\d+)/Y(\d+)/MULT18_([0145])", bel).groups())
        assert (x - block, y) == (columns[2 + lane], rows[0])
        assert block == (0, 1, 4, 5)[part]


@pytest.mark.parametrize("unfit", [
    {"device": SMALL},
    {"cols": 1},
    {"cols": 4, "scalers": 4},
    {"scalers": 14},
    {"scalers": 4, "parts": 5},
    {"scalers": 0},
], ids=["small device", "few PEs", "no free row", "many lanes", "many multipliers", "no scaler"])
def test_otherwise_no_scaler_is_constrained(tmp_path, unfit):
    assert set(placed(tmp_path, **unfit).values()) <= {None}
