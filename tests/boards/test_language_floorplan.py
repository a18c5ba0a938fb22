"""Sites for the block RAMs and the multipliers of a language core."""

import json
import re

import pytest

from weft.boards.devices import DEVICES
from weft.boards.language_floorplan import place_language_core

DEVICE = DEVICES["LFE5U-85F"]
SITE = re.compile(r"X(\d+)/Y(\d+)/(\w+)")


def _netlist(path, *, without=()):
    """The hard blocks of a language core, as synthesis names them."""
    core = "accelerator.core."
    cells = {f"{core}memory.bank_0.block_{n}": "DP16KD" for n in range(0, 1024, 8)}
    cells |= {f"{core}memory.bank_1.block_{n}": "DP16KD" for n in range(0, 1024, 16)}
    cells |= {f"{core}activations.block_{32 * n}": "DP16KD" for n in range(8)}
    cells |= {f"{core}lanes.slope_{n}.block_0": "DP16KD" for n in range(8)}
    cells |= {
        f"{core}columns.product_{c}_{k}.block": "MULT18X18D" for c in range(8) for k in range(16)
    }
    cells |= {f"{core}lanes.upper_{n}.block": "MULT18X18D" for n in range(17)}
    cells |= {f"{core}register_{n}": "TRELLIS_FF" for n in range(3)}
    for name in without:
        del cells[core + name]
    path.write_text(json.dumps({"modules": {"top": {"cells": {
        name: {"type": kind, "attributes": {}} for name, kind in cells.items()
    }}}}))
    return path


def _sites(path):
    """Column, row and name of the site of each cell that has one."""
    cells = json.loads(path.read_text())["modules"]["top"]["cells"]
    found = {
        name.removeprefix("accelerator.core."): SITE.fullmatch(cell["attributes"]["BEL"]).groups()
        for name, cell in cells.items() if "BEL" in cell["attributes"]
    }
    return {name: (int(x), int(y), block) for name, (x, y, block) in found.items()}


def test_each_block_has_a_site(tmp_path):
    path = _netlist(tmp_path / "top.json")
    regions = place_language_core(path, DEVICE)
    sites = _sites(path)
    assert len(sites) == len(set(sites.values())) == 208 + 128
    assert len(regions) == 192 and set(regions.values()) == set(range(8))
    for _, y, block in sites.values():
        assert (y in DEVICE.dsp_sites[1]) == block.startswith("MULT18_")
        assert (y in DEVICE.ram_sites[1]) == block.startswith("EBR")
    for bits in range(0, 1024, 16):  # the three blocks of two products are neighbours
        names = [f"memory.bank_{n}.block_{bits}" for n in (0, 1)]
        names.append(f"memory.bank_0.block_{bits + 8}")
        xs = sorted(sites[name][0] for name in names)
        assert len({sites[name][1] for name in names}) == 1 and xs[-1] - xs[0] <= 9


def test_products_follow_each_other_along_the_lines(tmp_path):
    path = _netlist(tmp_path / "top.json")
    place_language_core(path, DEVICE)
    sites = _sites(path)
    for column in range(8):
        xs = [sites[f"columns.product_{column}_{k}.block"][0] for k in range(16)]
        assert xs == sorted(xs) and xs[-1] - xs[0] > 80
    xs = [sites[f"activations.block_{32 * n}"][0] for n in range(8)]
    assert xs == sorted(xs) and xs[-1] - xs[0] > 80
    # The lanes have a row with space in its middle, beside the line with their tables.
    row = [x for x, y, _ in sites.values() if y == DEVICE.dsp_sites[1][1]]
    assert len(row) == 32 and not any(40 < x < 80 for x in row)


@pytest.mark.parametrize("device, without", [
    (DEVICE, ["memory.bank_1.block_16"]),
    (DEVICE, ["columns.product_0_0.block"]),
    (DEVICES["LFE5U-25F"], []),
])
def test_other_designs_do_not_change(tmp_path, device, without):
    path = _netlist(tmp_path / "top.json", without=without)
    before = path.read_text()
    assert place_language_core(path, device) == {}
    assert path.read_text() == before
