"""The floorplan: the DSP blocks of an array's PEs where the array's neighbours are neighbours."""

import json
import re
from pathlib import Path

from weft.boards.devices import Device

__all__ = ["place_dsp_blocks"]

_PE = re.compile(r"\bpe_(\d+)_(\d+)\.")
# A group of an ECP5's: what is added to its column for each block, and the block's name.
_GROUP = (0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5")
CROWDED = 2 / 3  # of the device's blocks


def place_dsp_blocks(path: Path, device: Device) -> int:
    """Tell nextpnr, in a netlist for it, where the PEs' MULT18X18D go; how many were told.

    Where PEs take most of the blocks that an ECP5 has, nextpnr puts the last ones wherever there is
    room, up to a whole chip away from their PEs. So rows of PEs go to rows of blocks, two
    or three to one where there are more of them, a column of them beside the other. The blocks that
    are left in a row, for what is not in a PE, are in its middle.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = {}
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            found = _PE.search(name)
            if cell["type"] == "MULT18X18D" and found:
                pes.setdefault((int(found[1]), int(found[2])), []).append((name, cell))
    count = sum(map(len, pes.values()))
    if not pes or count < CROWDED * device.capacity["DSP"]:
        return 0
    columns, lines = device.blocks
    share = -(-(1 + max(row for row, _ in pes)) // len(lines))  # rows of PEs to a row of blocks
    for line, y in enumerate(lines):
        here = sorted(
            (place for place in pes if place[0] // share == line), key=lambda place: place[::-1]
        )
        first, second = (
            [cell for place in places for _, cell in sorted(pes[place], key=lambda pe: pe[0])]
            for places in (here[: len(here) // 2], here[len(here) // 2 :])
        )
        sites = [f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in _GROUP]
        if len(first) + len(second) > len(sites):
            return 0
        for cells, free in ((first, sites), (reversed(second), reversed(sites))):
            for cell, site in zip(cells, free, strict=False):
                cell["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return count
