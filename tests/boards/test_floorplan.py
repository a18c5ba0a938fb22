"""The floorplan: each DSP block has its own site, near its neighbours; or none is constrained."""

import json
import re

import pytest

from weft.boards.devices import DEVICES
from weft.boards.floorplan import place_dsp_blocks

LARGE, SMALL = DEVICES["LFE5U-85F"], DEVICES["LFE5U-25F"]


def arranged(tmp_path, device, rows, cols, products, others=3):
    """The site of each DSP block by PE and product: (x, y, number); None if unconstrained."""
    names = {
        f"core.array.pe_{row}_{col}.mac.product_{n}.block": (row, col, n)
        for row in range(rows) for col in range(cols) for n in range(products)
    }
    cells = {name: {"type": "MULT18X18D", "attributes": {}} for name in names}
    cells |= {
        f"core.pairs.product_{n}.block": {"type": "MULT18X18D", "attributes": {}}
        for n in range(others)
    }
    cells["core.array.pe_0_0.mac.sum"] = {"type": "CCU2C", "attributes": {}}
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    placed = place_dsp_blocks(path, device)
    cells = json.loads(path.read_text())["modules"]["top"]["cells"]
    found = {names[n]: cell["attributes"].get("BEL") for n, cell in cells.items() if n in names}
    told = [cell["attributes"] for cell in cells.values() if cell["attributes"]]
    assert len(told) == sum(bel is not None for bel in found.values())
    assert len(told) == (rows * cols * products if placed else 0)
    return found


def site(bel):
    return tuple(map(int, re.fullmatch(r"X(\d+)/Y(\d+)/MULT18_([0145])", bel).groups()))


@pytest.mark.parametrize(
    ("device", "rows", "cols", "products"),
    [(LARGE, 6, 6, 4), (LARGE, 8, 4, 4), (LARGE, 12, 13, 1), (LARGE, 1, 15, 8),
     (LARGE, 8, 3, 4), (SMALL, 4, 6, 1), (SMALL, 5, 1, 4)],
    ids=str,
)
def test_every_block_has_its_own_site(tmp_path, device, rows, cols, products):
    bels = arranged(tmp_path, device, rows, cols, products)
    assert None not in bels.values()
    assert len(set(bels.values())) == rows * cols * products
    columns, lines = device.dsp_sites
    for x, y, number in map(site, bels.values()):
        assert x - number in columns
        assert y in lines


def test_blocks_of_a_pe_and_of_its_neighbours_are_near(tmp_path):
    places = {k: site(bel) for k, bel in arranged(tmp_path, LARGE, 6, 6, 4, others=12).items()}
    for (row, col, n), (x, y, _) in places.items():
        assert y == LARGE.dsp_sites[1][row // 2]
        assert abs(x - places[row, col, 0][0]) == (0, 1, 4, 5)[n]
        if col < 5:  # two groups of sites per PE column; in one place, a free group between
            assert 18 <= places[row, col + 1, n][0] - x <= 29


def test_columns_of_one_row_of_pes_go_to_and_fro(tmp_path):
    places = {k: site(bel) for k, bel in arranged(tmp_path, LARGE, 1, 15, 8).items()}
    for (_, col, n), (x, y, _) in places.items():
        assert y == LARGE.dsp_sites[1][col // 5]
        if col in (4, 9):  # the last column in a row of blocks, and the first one in the next
            assert abs(places[0, col + 1, n][0] - x) <= 5
        elif col < 14:
            assert (places[0, col + 1, n][0] > x) == (col // 5 % 2 == 0)


def test_pairs_of_rows_follow_each_other_if_a_row_of_blocks_stays_free(tmp_path):
    places = {k: site(bel) for k, bel in arranged(tmp_path, LARGE, 8, 3, 4).items()}
    ranges = []
    for pair in range(4):
        sites = [site for (row, _, _), site in places.items() if row // 2 == pair]
        assert {y for _, y, _ in sites} == {LARGE.dsp_sites[1][2 if pair < 2 else 1]}
        ranges.append((min(x for x, *_ in sites), max(x for x, *_ in sites)))
    right, left = ranges[0], ranges[1]
    assert left[1] < right[0] and right[1] - right[0] < 60
    assert ranges[2] == left and ranges[3] == right


def test_free_sites_are_in_the_middle(tmp_path):
    taken = {site(bel)[:2] for bel in arranged(tmp_path, LARGE, 6, 6, 4, others=12).values()}
    columns, lines = LARGE.dsp_sites
    free = {x for x in columns if (x, lines[0]) not in taken}
    assert free == {columns[6]}


@pytest.mark.parametrize(
    ("device", "rows", "cols", "products"),
    [(LARGE, 5, 4, 4), (LARGE, 12, 4, 4), (SMALL, 3, 1, 4)],
    ids=["few blocks", "more than a row has", "few blocks on a small device"],
)
def test_otherwise_nothing_is_constrained(tmp_path, device, rows, cols, products):
    assert set(arranged(tmp_path, device, rows, cols, products).values()) == {None}
