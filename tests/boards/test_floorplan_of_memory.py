"""The floorplan of a memory: a site for each block; the same bits of all banks are neighbours.

Each block of the buffer of B is a region of its own. Registers of the map reader lie behind the
memory.
"""

import json
import re

import pytest

from weft.boards.devices import DEVICES
from weft.boards.floorplan import operand_regions, place_map_reader, place_memory

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


def register(number, source, *, enabled=False):
    """A flip-flop whose output is net ``number``."""
    return {
        "type": "TRELLIS_FF", "attributes": {}, "parameters": {"CEMUX": "CE" if enabled else "1 "},
        "connections": {"DI": [source], "Q": [number]},
    }


def placed_map_reader(tmp_path, device, rows, banks, fields=145):
    """The sites of registers of a map reader beside a memory, by what they hold and their row.

    There are 50 bits in each origin, ``fields`` in those of the job, 3 of a step, and a flag for
    each row. Logic drives the nets from 9,000 on.
    """
    core = "accelerator.core"
    panels, copies = f"{core}.map_reader.panels", f"{core}.map_reader.job__fields$39"
    cells = {
        f"{panels}.origins[{row}].{part}_TRELLIS_FF_Q_{bit}": register(
            1000 + 50 * row + start + bit, 9000, enabled=True
        )
        for row in range(rows) for part, start, bits in (
            ("address.word", 0, 16), ("y", 16, 17), ("x", 33, 17),
        ) for bit in range(bits)
    } | {
        f"{core}.memory.bank_{bank}.block_{bit}": {"type": "DP16KD", "attributes": {}}
        for bank in range(banks) for bit in range(0, 64, 8)
    }
    for bit in range(fields):
        cells[f"{core}.map_reader.job__fields$36_TRELLIS_FF_Q_{bit}"] = register(
            2000 + bit, 9001, enabled=True
        )
        cells[f"{copies}_TRELLIS_FF_Q_{bit}"] = register(3000 + bit, 2000 + bit)
    for bit in range(3):
        cells[f"{core}.sequencer.step_TRELLIS_FF_Q_{bit}"] = register(4000 + bit, 9002)
        name = ("advance", "advance$13", "step.panel_last")[bit]
        cells[f"{core}.map_reader.offsets.{name}_TRELLIS_FF_Q"] = register(4100 + bit, 4000 + bit)
    for row in range(rows):
        cells[f"{panels}.used_TRELLIS_FF_Q_{row}"] = register(5000 + row, 9003)
        cells[f"{panels}.$like$18_TRELLIS_FF_Q_{row}"] = register(5100 + row, 5000 + row)
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    place_memory(path, device)
    place_map_reader(path, device)
    sites = {}
    for name, cell in json.loads(path.read_text())["modules"]["top"]["cells"].items():
        if cell["type"] == "TRELLIS_FF" and cell["attributes"]:
            match = re.search(r"origins\[(\d+)\]", name)
            what = int(match[1]) if match else name.split("_TRELLIS")[0].removeprefix(f"{core}.")
            site = re.fullmatch(r"X(\d+)/Y(\d+)/SLICE([A-D])\.FF([01])", cell["attributes"]["BEL"])
            x, y, piece, side = site.groups()
            place = 2 * "ABCD".index(piece) + int(side)
            sites.setdefault(what, []).append((int(x), int(y), place))
    return sites


@pytest.mark.parametrize(("fields", "places"), [(145, {0, 1}), (172, {0, 1, 2})])
def test_registers_of_a_map_reader_lie_behind_the_middle_of_the_memory(tmp_path, fields, places):
    """Origins but those of row 0, the fields of the job on their left, and copies on their right.

    The last line of blocks of an LFE5U-85F is 82, and its last line is 94. Addresses of a program
    memory have more bits: then a tile has a third register.
    """
    sites = placed_map_reader(tmp_path, LARGE, 8, 9, fields)
    columns = {row: {*range(34 + 4 * row, 38 + 4 * row)} for row in range(1, 8)} | {
        "map_reader.job__fields$36": {*range(26, 34)}, "map_reader.panels.$like$18": {36},
        "map_reader.job__fields$39": {*range(66, 74)}, "map_reader.offsets.advance": {74},
        "map_reader.offsets.advance$13": {74}, "map_reader.offsets.step.panel_last": {74},
    }
    assert {what: {x for x, *_ in found} for what, found in sites.items()} == columns
    every = [site for found in sites.values() for site in found]
    assert len({*every}) == len(every) == 7 * 50 + 2 * fields + 3 + 8
    assert {place for *_, place in sites["map_reader.job__fields$36"]} == places
    assert {y for _, y, _ in every} == {*range(84, 94)}


@pytest.mark.parametrize(("device", "rows", "banks"), [(SMALL, 8, 9), (LARGE, 8, 0), (LARGE, 1, 9)])
def test_a_map_reader_without_a_memory_or_many_rows_is_free(tmp_path, device, rows, banks):
    assert placed_map_reader(tmp_path, device, rows, banks) == {}
