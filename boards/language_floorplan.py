"""Floorplan of a language core on an LFE5U-85F: sites for its block RAMs and its multipliers.

All block RAMs and most DSP blocks are in use. nextpnr puts the last ones wherever a site is free,
up to a whole chip away from what they belong to.

A product of the array has a byte of the main memory: a block of the large bank, and half a block of
the small one. So three blocks and two multipliers belong together, as a group. Groups lie along a
line of blocks in the order of their products, as do the multipliers and the blocks of the
activations. So all columns of the array have the same value of a vector at the same place of their
line. The columns follow each other from line to line. The multipliers of the lanes get the middle
of the device, and so do their memories.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from weft.boards.floorplan import DSP_GROUP, RAM_GROUP
from weft.files import write_text
from weft.language_core.config import COLUMNS, DEPTH

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["place_language_core"]

_PRODUCT = re.compile(r"\bcolumns\.product_(\d+)_(\d+)\.")
_BLOCK = re.compile(r"\bmemory\.bank_(\d+)\.block_(\d+)\b")
_ACTIVATION = re.compile(r"\bactivations\.block_(\d+)\b")
_PAIRS = DEPTH // 2  # groups of a column
_SPARE_LINE = 1  # the line of blocks with the other memories
_SPARE_ROW = 1  # the row of multipliers with those of the lanes, which lies beside that line


def place_language_core(path: Path, device: "Device") -> dict[str, int]:
    """Constrain the DP16KD and MULT18X18D of a language core; returns the regions of its memory.

    The region of each block of the main memory is by the name of its cell: one half of a line.
    Nothing changes for another design, another device, or another size of the memory.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    cells = {
        name: cell for module in netlist["modules"].values()
        for name, cell in module["cells"].items() if cell["type"] in ("DP16KD", "MULT18X18D")
    }
    products, groups, activations, others = _sorted(cells)
    lines, rows = device.ram_sites[1], device.dsp_sites[1]
    fit = len(groups) == COLUMNS * _PAIRS and all(len(group) == 3 for group in groups.values())
    if not fit or len(products) != COLUMNS * DEPTH or len(lines) < 4 or len(rows) < 3:
        return {}
    regions = _place_blocks(cells, groups, activations, others, device)
    _place_products(cells, products, device)
    write_text(path, json.dumps(netlist))
    return regions


def _sorted(cells):
    """The products by column and number; the groups, names of blocks by column and pair; the
    activations by number; and the names of the other blocks.
    """
    products, groups, activations, others = {}, {}, {}, []
    for name, cell in cells.items():
        if match := _PRODUCT.search(name):
            products[int(match[1]), int(match[2])] = name
        elif match := _BLOCK.search(name):
            column, pair = divmod(int(match[2]) // 16, _PAIRS)
            groups.setdefault((column, pair), []).append(name)
        elif match := _ACTIVATION.search(name):
            activations[int(match[1])] = name
        elif cell["type"] == "DP16KD":
            others.append(name)
    return products, groups, activations, sorted(others)


def _place_blocks(cells, groups, activations, others, device):
    """Sites for all block RAMs; the regions of those of the groups."""
    columns, lines = device.ram_sites
    sites = [(x + dx, block) for x in columns for dx, block in RAM_GROUP]
    size = len(sites) // 3  # groups of a full line
    counts = [size] * len(lines)
    counts[_SPARE_LINE] = len(groups) - size * (len(lines) - 1)
    left, regions, waiting = sorted(groups), {}, list(others)
    for number, (y, count) in enumerate(zip(lines, counts, strict=True)):
        own, left = left[:count], left[count:]
        # Parts of the line, in their order: the pair of products, and the names of the blocks.
        parts = [(pair + 0.5, sorted(groups[column, pair])) for column, pair in own]
        if number == _SPARE_LINE:
            spread = len(activations) / _PAIRS
            parts += [(n / spread + 0.6, [name]) for n, name in activations.items()]
        free = len(sites) - sum(len(names) for _, names in parts)
        middle, waiting = waiting[:free], waiting[free:]
        parts = sorted([*parts, (_PAIRS / 2, middle)], key=lambda part: part[0])
        in_order = [name for _, names in parts for name in names]
        for place, (name, (x, block)) in enumerate(zip(in_order, sites, strict=False)):
            cells[name]["attributes"]["BEL"] = f"X{x}/Y{y}/{block}"
            if _BLOCK.search(name):
                regions[name] = 2 * number + (2 * place >= len(sites))
    return regions


def _place_products(cells, products, device):
    """Sites for the multipliers of the array: two columns in the spare row, three in others."""
    xs, rows = device.dsp_sites
    sites = [(x + dx, block) for x in xs for dx, block in DSP_GROUP]
    shares, left = [3, 3, 3], list(range(COLUMNS))
    shares[_SPARE_ROW] = COLUMNS - 6
    for y, share in zip(rows, shares, strict=False):
        own, left = left[:share], left[share:]
        names = [products[column, k] for k in range(DEPTH) for column in own]
        half = len(names) // 2
        for part, places in ((names[:half], sites), (names[:half - 1:-1], sites[::-1])):
            for name, (x, block) in zip(part, places, strict=False):
                cells[name]["attributes"]["BEL"] = f"X{x}/Y{y}/{block}"
