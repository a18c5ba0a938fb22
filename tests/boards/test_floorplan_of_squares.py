"""The floorplan of squares: each block RAM of a PE has its own site, beside the DSP blocks."""

import json
import re

import pytest

from weft.boards.devices import DEVICES
from weft.config import Config

LARGE, SMALL = DEVICES["LFE5U-85F"], DEVICES["LFE5U-25F"]
KINDS = {"dsp": "MULT18X18D", "ram": "DP16KD"}
OTHERS = [f"core.feeder.a.bank_{n // 4}.block_{n % 4 * 36}" for n in range(48)]


def arranged(tmp_path, device, rows, others=OTHERS, **fields):
    """The Config, the sites (kind, x, y) by PE and product, and the sites of the other blocks.

    A site is None if its block has no constraint.
    """
    config = Config(target="ecp5", rows=rows, depth=8, **fields)
    names = {
        f"core.array.pe_{row}_{col}.mac.product_{n}.block": (row, col, n)
        for row in range(rows) for col in range(config.cols) for n in range(4)
    }
    types = {name: KINDS.get(config.resource(col), "LUT4") for name, (_, col, _) in names.items()}
    types |= dict.fromkeys(sorted(others), "DP16KD")
    unconnected = {"connections": {}, "port_directions": {}, "parameters": {}}
    cells = {name: {"type": kind, "attributes": {}, **unconnected} for name, kind in types.items()}
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {}}}}))
    device.flow.improve(path, device)
    placed = json.loads(path.read_text())["modules"]["top"]["cells"]
    found, rest = {}, [placed[name]["attributes"].get("BEL") for name in others]
    rest = [bel and site(bel) for bel in rest]
    for name, position in names.items():
        bel = placed[name]["attributes"].get("BEL")
        if placed[name]["type"] in KINDS.values():
            found[position] = bel and site(bel)
    return config, found, rest


def site(bel):
    x, y, kind = re.fullmatch(r"X(\d+)/Y(\d+)/(EBR|MULT18_)[0-5]", bel).groups()
    return kind, int(x), int(y)


def test_every_block_has_its_own_site(tmp_path):
    _, places, others = arranged(tmp_path, LARGE, 8, cols=12, dsp_cols=4, ram_cols=4)
    every = [*places.values(), *others]
    assert None not in every and len(set(every)) == 256 + len(OTHERS)
    columns, lines = LARGE.ram_sites
    groups = {x + 2 * n for x in columns for n in range(4)}
    for kind, x, y in every:
        if kind == "EBR":
            assert x in groups and y in lines


def test_blocks_of_a_row_are_in_one_band_in_the_order_of_the_columns(tmp_path):
    config, places, _ = arranged(tmp_path, LARGE, 8, cols=12, dsp_cols=4, ram_cols=4)
    for (row, col, n), (kind, x, y) in places.items():
        sites = LARGE.dsp_sites if kind == "MULT18_" else LARGE.ram_sites
        assert y == sites[1][row // 3]
        following = (row, col + 3, n)  # of the same kind
        assert config.resource(col) == {"MULT18_": "dsp", "EBR": "ram"}[kind]
        if following in places:
            assert places[following][1] > x


def test_the_parts_of_another_memory_lie_in_their_order(tmp_path):
    _, _, others = arranged(tmp_path, LARGE, 8, cols=12, dsp_cols=4, ram_cols=3)
    xs = [x for _, x, _ in others]
    assert xs == sorted(xs) and min(xs) == 4 and max(xs) > 110


@pytest.mark.parametrize("device, fields", [
    (SMALL, dict(rows=4, cols=7, dsp_cols=1, ram_cols=1)),
    (LARGE, dict(rows=8, cols=12, dsp_cols=4, ram_cols=0)),
    (LARGE, dict(rows=9, cols=12, dsp_cols=0, ram_cols=5)),
    (LARGE, dict(rows=8, cols=12, dsp_cols=4, ram_cols=4, others=[f"a.{n}" for n in range(81)])),
], ids=["no sites", "no squares", "more than a line has", "more than the device has"])
def test_otherwise_no_block_ram_is_constrained(tmp_path, device, fields):
    config, places, others = arranged(tmp_path, device, **fields)
    assert {place for (_, col, _), place in places.items()
            if config.resource(col) == "ram"} <= {None}
    assert set(others) == {None}
