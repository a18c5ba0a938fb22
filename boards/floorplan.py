"""Floorplan of an ECP5: puts the DSP blocks of neighbouring PEs next to each other."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.files import write_text

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["GROUP", "PE", "blocks_of_pes", "constrain", "place_dsp_blocks", "shares"]

Position = tuple[int, int]  # row and column of a PE
Pes = dict[Position, list[tuple[str, dict]]]  # the cells of each PE, with their names
PE = re.compile(r"\bpe_(\d+)_(\d+)\.")
# The four blocks of a group on an ECP5: column relative to the group, and name.
GROUP = (0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5")
MIN_SHARE = 0.6  # PEs are constrained only if they use this share of the device's DSP blocks


def place_dsp_blocks(path: Path, device: "Device") -> bool:
    """Constrain the MULT18X18D of the PEs in a netlist to sites; returns whether they have sites.

    If PEs use most blocks of an ECP5, nextpnr puts the last ones wherever a site is free, up to a
    whole chip away from their PEs. So each row of PEs gets a row of blocks, or two or three rows of
    PEs share one, in the order of their columns. If there are fewer rows of PEs, each row of blocks
    gets some columns of PEs, in alternating directions. The free sites, for multipliers outside the
    PEs, stay in the middle of each row.

    If the PEs do not need all rows of blocks, the first rows of blocks stay free. Then the rows of
    PEs follow each other in pairs to and fro, from the last row of blocks to the first one in use.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = blocks_of_pes(netlist, "MULT18X18D")
    count = sum(map(len, pes.values()))
    if not pes or count < MIN_SHARE * device.capacity["DSP"]:
        return False
    columns, rows = device.dsp_sites
    needed = -(-count // (len(columns) * len(GROUP)))
    if needed < len(rows):
        rows, in_rows = rows[: -needed - 1 : -1], _paired_shares(pes, needed)
    else:
        in_rows = shares(pes, len(rows))
    lines = [[f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in GROUP] for y in rows]
    if not constrain(pes, in_rows, lines):
        return False
    write_text(path, json.dumps(netlist))
    return True


def blocks_of_pes(netlist: dict, kind: str) -> Pes:
    """The cells of a kind in PEs, with their names, by row and column of the PE."""
    pes = {}
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            match = PE.search(name)
            if cell["type"] == kind and match:
                pes.setdefault((int(match[1]), int(match[2])), []).append((name, cell))
    return pes


def constrain(pes: Pes, in_lines: list[list[Position]], lines: list[list[str]]) -> bool:
    """Give the cells of each line's PEs sites of the line; False if there are too few.

    The first half of the PEs gets the first sites, and the second half the last sites.
    """
    if any(
        sum(len(pes[position]) for position in positions) > len(sites)
        for positions, sites in zip(in_lines, lines, strict=True)
    ):
        return False
    for positions, sites in zip(in_lines, lines, strict=True):
        middle = len(positions) // 2
        left, right = (
            [cell for position in half for _, cell in sorted(pes[position], key=lambda pe: pe[0])]
            for half in (positions[:middle], positions[middle:])
        )
        for cells, ordered_sites in ((left, sites), (reversed(right), reversed(sites))):
            for cell, site in zip(cells, ordered_sites, strict=False):
                cell["attributes"]["BEL"] = site
    return True


def shares(positions: Iterable[Position], count: int) -> list[list[Position]]:
    """The positions (row, column) of PEs for each row of blocks, in the order of its sites."""
    rows, columns = (sorted(set(numbers)) for numbers in zip(*positions, strict=True))
    axis, numbers = (0, rows) if len(rows) >= count else (1, columns)
    size = -(-len(numbers) // count)
    found = []
    for n in range(count):
        chosen = numbers[n * size : (n + 1) * size]
        share = [position for position in positions if position[axis] in chosen]
        backwards = axis == 1 and n % 2 == 1
        found.append(sorted(share, key=lambda position: position[::-1], reverse=backwards))
    return found


def _paired_shares(positions, count):
    """The same for pairs of rows, which share their operand registers, one after the other."""
    size = -(-(1 + max(row for row, _ in positions)) // count)
    found = []
    for n in range(count):
        share = [position for position in positions if position[0] // size == n]
        order = sorted(share, key=lambda position: (position[0] // 2, position[1], position[0]))
        found.append(order[::-1] if n % 2 == 0 else order)
    return found
