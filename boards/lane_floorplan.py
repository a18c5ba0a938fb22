"""Floorplan of an ECP5: the multipliers of a scaler next to each other."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from weft.boards.floorplan import GROUP
from weft.files import write_text

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["place_scalers"]

_SCALER = re.compile(r"\bscaler_(\d+)\.")


def place_scalers(path: Path, device: "Device") -> None:
    """Constrain the MULT18X18D of the scalers in a netlist to sites.

    The scaler of a lane multiplies in four blocks, and adds their products. Each scaler gets a
    group of four sites, in the middle of a row of blocks in which nothing else is constrained.
    docs/boards.md has the length of the wires with and without these sites.

    Nothing changes if `weft.boards.floorplan.place_dsp_blocks` constrained no block, or left no
    row free, or if the scalers do not fit into the row.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    scalers, taken = {}, set()
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            if cell["type"] != "MULT18X18D":
                continue
            if "BEL" in cell["attributes"]:
                taken.add(int(cell["attributes"]["BEL"].split("/")[1][1:]))
            elif match := _SCALER.search(name):
                scalers.setdefault(int(match[1]), []).append((name, cell))
    columns, rows = device.dsp_sites
    free = [y for y in rows if y not in taken]
    fit = len(scalers) <= len(columns) and max(map(len, scalers.values()), default=0) <= len(GROUP)
    if not taken or not free or not fit:
        return
    first = (len(columns) - len(scalers)) // 2
    for x, (_, cells) in zip(columns[first:], sorted(scalers.items()), strict=False):
        for (_, cell), (dx, block) in zip(sorted(cells, key=lambda c: c[0]), GROUP, strict=False):
            cell["attributes"]["BEL"] = f"X{x + dx}/Y{free[-1]}/{block}"
    write_text(path, json.dumps(netlist))
