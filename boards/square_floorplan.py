"""Floorplan of an ECP5: block RAMs of PEs beside the DSP blocks of their neighbours."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from weft.boards.floorplan import PE, blocks_of_pes, constrain, shares
from weft.files import write_text

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["RAM_GROUP", "place_squares"]

RAM_GROUP = tuple((2 * n, f"EBR{n}") for n in range(4))  # column relative to the group, and name


def place_squares(path: Path, device: "Device") -> bool:
    """Constrain the DP16KD of a design with squares to sites; returns whether it has sites now.

    A PE in a column with block RAM has a block for each product. The rows of PEs are shared out to
    the first lines of block RAM as `weft.boards.floorplan.place_dsp_blocks` shares them out to the
    rows of DSP blocks: each line of block RAM lies behind a row of DSP blocks. So the blocks of a
    row of PEs are near each other, in the order of their columns.

    The blocks of all other memories get the free sites. Few sites are free, and nextpnr's
    legalization did not find them. The parts of each memory are spread across the device in their
    order, because they belong to rows or columns of PEs.

    A device with few lines has no sites here, and its blocks no constraints.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = blocks_of_pes(netlist, "DP16KD")
    columns, lines = device.ram_sites
    count = min(len(lines), len(device.dsp_sites[1]))
    if not pes or not count:
        return False
    sites = [[f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in RAM_GROUP] for y in lines]
    others = _others(netlist)
    free = sum(map(len, sites)) - sum(map(len, pes.values()))
    if len(others) > free or not constrain(pes, shares(pes, count), sites[:count]):
        return False
    taken = {cell["attributes"]["BEL"] for cells in pes.values() for _, cell in cells}
    across = [site for column in zip(*reversed(sites), strict=True) for site in column]
    free_sites = [site for site in across if site not in taken]
    for n, cell in enumerate(others):
        cell["attributes"]["BEL"] = free_sites[n * len(free_sites) // len(others)]
    write_text(path, json.dumps(netlist))
    return True


def _others(netlist):
    """The DP16KD outside the PEs, by the place of each part in its memory."""
    memories = {}
    for module in netlist["modules"].values():
        for name, cell in sorted(module["cells"].items(), key=lambda item: _numbers(item[0])):
            if cell["type"] == "DP16KD" and not PE.search(name):
                memory = re.sub(r"(bank|block|memory)_\d+", "", name)
                memories.setdefault(memory, []).append(cell)
    placed = [
        ((n + 0.5) / len(cells), name, cell)
        for name, cells in memories.items() for n, cell in enumerate(cells)
    ]
    return [cell for _, _, cell in sorted(placed, key=lambda part: part[:2])]


def _numbers(name):
    """The name as words and numbers, so that part 10 comes after part 9."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", name)]
