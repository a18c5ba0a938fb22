"""Floorplan of an ECP5: puts the DSP blocks of neighbouring PEs next to each other."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = ["place_dsp_blocks"]

_PE = re.compile(r"\bpe_(\d+)_(\d+)\.")
# The four blocks of a group on an ECP5: column relative to the group, and name.
_GROUP = (0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5")
MIN_SHARE = 2 / 3  # PEs are constrained only if they use this share of the device's DSP blocks


def place_dsp_blocks(path: Path, device: "Device") -> int:
    """Constrain the MULT18X18D of the PEs in a netlist to sites; returns their number.

    If PEs use most blocks of an ECP5, nextpnr puts the last ones wherever a site is free, up to a
    whole chip away from their PEs. So each row of PEs gets a row of blocks, or two or three rows of
    PEs share one, in the order of their columns. The free sites, for multipliers outside the PEs,
    stay in the middle of each row.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = {}
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            match = _PE.search(name)
            if cell["type"] == "MULT18X18D" and match:
                pes.setdefault((int(match[1]), int(match[2])), []).append((name, cell))
    count = sum(map(len, pes.values()))
    if not pes or count < MIN_SHARE * device.capacity["DSP"]:
        return 0
    columns, rows = device.dsp_sites
    pe_rows = -(-(1 + max(row for row, _ in pes)) // len(rows))  # PE rows per row of blocks
    for number, y in enumerate(rows):
        positions = sorted(
            (position for position in pes if position[0] // pe_rows == number),
            key=lambda position: position[::-1],
        )
        middle = len(positions) // 2
        left, right = (
            [cell for position in half for _, cell in sorted(pes[position], key=lambda pe: pe[0])]
            for half in (positions[:middle], positions[middle:])
        )
        sites = [f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in _GROUP]
        if len(left) + len(right) > len(sites):
            return 0
        for cells, ordered_sites in ((left, sites), (reversed(right), reversed(sites))):
            for cell, site in zip(cells, ordered_sites, strict=False):
                cell["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return count
