"""The floorplan of a memory: a site for each block; the same bits of all banks are neighbours.

Each block of the buffer of B is a region of its own. The window origins of a panel lie behind the
memory.
"""

import json
import re

import pytest

from weft.boards.devices import DEVICES
from weft.boards.floorplan import operand_regions, place_memory, place_origins

LARGE, SMALL = DEVICES["LFE5U-85F"], DEVICES["LFE5U-25F"]


OPERANDS = [
    f"accelerator.core.buffer_b.bank_{bank}.block_{bit}" for bank in (0, 1) for bit in (0, 36)
]


def arranged(tmp_path, device, banks, width, step):
    """By bank and first bit: (x, y, block number, region) of each block, or an empty dict."""
    places = {
        f"accelerator.core.memory.bank_{bank}.block_{bit}": (bank, bit)
        for bank in range(banks) for bit in range(0, width, step)
    }
    others = [*OPERANDS, "accelerator.core.memory.select", "accelerator.core.lines.bank_0.block_0"]
    cells = {
        name: {"type": "DP16KD" if "block" in name else "TRELLIS_FF", "attributes": {}}
        for name in [*places, *others]
    }
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}, "empty": {"cells": {}}}}))
    regions = place_memory(path, device)
    operands = operand_regions(path)
    assert sorted(operands) == sorted(OPERANDS)
    assert len({*operands.values()} - {*regions.values()}) == len(OPERANDS)
    cells = json.loads(path.read_text())["modules"]["top"]["cells"]
    sites = {
        name: re.fullmatch(r"X(\d+)/Y(\d+)/EBR([0-3])", cell["attributes"]["BEL"]).groups()
        for name, cell in cells.items() if cell["attributes"]
    }
    assert set(sites) == set(regions)
    return {places[name]: (*map(int, site), regions[name]) for name, site in sites.items()}


@pytest.mark.parametrize(
    ("banks", "width", "step"), [(9, 64, 4), (4, 128, 16), (1, 8, 8), (13, 64, 4)], ids=str
)
def test_every_block_has_its_own_site(tmp_path, banks, width, step):
    found = arranged(tmp_path, LARGE, banks, width, step)
    assert len(found) == banks * width // step
    assert len({site[:3] for site in found.values()}) == len(found)
    columns, lines = LARGE.ram_sites
    for x, y, number, _ in found.values():
        assert x - 2 * number in columns
        assert y in lines


def test_the_same_bits_of_all_banks_are_neighbours_in_a_region(tmp_path):
    found = arranged(tmp_path, LARGE, 9, 64, 4)
    for bit in range(0, 64, 4):
        bits = [found[bank, bit] for bank in range(9)]
        assert len({(y, region) for _, y, _, region in bits}) == 1
        assert [x for x, *_ in bits] == sorted(x for x, *_ in bits)
        assert bits[-1][0] - bits[0][0] < 24
    regions = {}
    for x, y, _, region in found.values():
        regions.setdefault(region, []).append((y, x))
    for places in regions.values():
        assert len({y for y, _ in places}) == 1
        assert max(places)[1] - min(places)[1] < 68


@pytest.mark.parametrize(
    ("device", "banks", "width"), [(SMALL, 7, 32), (LARGE, 0, 0), (LARGE, 9, 128)]
)
def test_no_constraints_without_a_memory_or_space(tmp_path, device, banks, width):
    assert arranged(tmp_path, device, banks, width, 4) == {}


def placed_origins(tmp_path, device, rows, banks):
    """The origins of rows of a panel beside a memory, and their sites, by row."""
    cells = {
        f"accelerator.core.map_reader.panels.origins[{row}].{part}_TRELLIS_FF_Q_{bit}": {
            "type": "TRELLIS_FF", "attributes": {},
        }
        for row in range(rows) for part, bits in (("address.word", 16), ("y", 17), ("x", 17))
        for bit in range(bits)
    } | {
        f"accelerator.core.memory.bank_{bank}.block_{bit}": {"type": "DP16KD", "attributes": {}}
        for bank in range(banks) for bit in range(0, 64, 8)
    }
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    place_memory(path, device)
    place_origins(path, device)
    sites = {}
    for name, cell in json.loads(path.read_text())["modules"]["top"]["cells"].items():
        if cell["type"] == "TRELLIS_FF" and cell["attributes"]:
            row = int(re.search(r"origins\[(\d+)\]", name)[1])
            site = re.fullmatch(r"X(\d+)/Y(\d+)/SLICEA\.FF([01])", cell["attributes"]["BEL"])
            sites.setdefault(row, []).append(tuple(map(int, site.groups())))
    return sites


def test_origins_lie_behind_the_middle_of_the_memory(tmp_path):
    """All but those of row 0, with 50 registers each, at the edge of an LFE5U-85F: line 93."""
    sites = placed_origins(tmp_path, LARGE, 8, 9)
    assert sorted(sites) == list(range(1, 8))
    every = [site for row in sites.values() for site in row]
    assert len({*every}) == len(every) == 7 * 50
    assert {y for _, y, _ in every} == {*range(84, 94)}
    assert {x for x, *_ in every} == {*range(38, 66)}
    for row, places in sites.items():
        assert {x for x, *_ in places} == {*range(34 + 4 * row, 38 + 4 * row)}


@pytest.mark.parametrize(("device", "rows", "banks"), [(SMALL, 8, 9), (LARGE, 8, 0), (LARGE, 1, 9)])
def test_origins_without_a_memory_are_free(tmp_path, device, rows, banks):
    assert placed_origins(tmp_path, device, rows, banks) == {}
