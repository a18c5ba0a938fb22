"""Floorplan of an ECP5 for a network core: places, or regions, of its block RAMs."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from weft.boards.square_floorplan import RAM_GROUP
from weft.files import write_text

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["operand_regions", "place_memory"]

# Bank, and first bit of the word, of a block of a
# `weft.hw.network_core.memory.banked_memory.BankedMemory`.
_BLOCK = re.compile(r"\bmemory\.bank_(\d+)\.block_(\d+)\b")
# The same of a block of a `weft.hw.network_core.loads.loaded_buffer.LoadedBuffer` for B.
_OPERAND_BLOCK = re.compile(r"\bbuffer_b\.bank_(\d+)\.block_(\d+)\b")
_MEMORY_REGIONS = 1000  # more than `place_memory` makes


def place_memory(path: Path, device: "Device") -> dict[str, int]:
    """Constrain the DP16KD of a memory to sites; returns the region of each, by cell name.

    All rows of the array read all banks, but a bit of a row comes from the same bit of the banks.
    So the blocks with the same bits of all banks become neighbours in a line of blocks, beginning
    with the last line of the device. A region is one half of the blocks in a line.

    A device with few lines of blocks has no sites here, and its blocks no constraints.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    slices = {}  # of the word, by first bit: the blocks of all banks
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            match = _BLOCK.search(name)
            if cell["type"] == "DP16KD" and match:
                slices.setdefault(int(match[2]), []).append((int(match[1]), name, cell))
    columns, lines = device.ram_sites
    sites = [(x + dx, block) for x in columns for dx, block in RAM_GROUP]
    banks = max(map(len, slices.values()), default=1)
    in_line = len(sites) // banks  # slices
    if not slices or in_line * len(lines) < len(slices):
        return {}
    regions = {}
    for number, (_, blocks) in enumerate(sorted(slices.items())):
        line, place = divmod(number, in_line)
        first = place * banks + (len(sites) - in_line * banks) // 2
        for n, (_, name, cell) in enumerate(sorted(blocks, key=lambda block: block[0])):
            x, site = sites[first + n]
            cell["attributes"]["BEL"] = f"X{x}/Y{lines[-1 - line]}/{site}"
            regions[name] = 2 * line + (2 * place >= in_line)
    write_text(path, json.dumps(netlist))
    return regions


def operand_regions(path: Path) -> dict[str, int]:
    """A region for each DP16KD of the buffer of B, by cell name.

    The blocks have no fixed sites: nextpnr places each near the columns of PEs that it feeds, and
    so all over the device. Their numbers differ from the regions of :func:`place_memory`.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    names = sorted(
        name for module in netlist["modules"].values() for name, cell in module["cells"].items()
        if cell["type"] == "DP16KD" and _OPERAND_BLOCK.search(name)
    )
    return {name: _MEMORY_REGIONS + number for number, name in enumerate(names)}
