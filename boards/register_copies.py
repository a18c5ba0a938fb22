"""Copies of registers of an ECP5 whose loads are far apart: one for each region, or PE."""

import json
from pathlib import Path

from weft.boards.floorplan import PE
from weft.files import write_text

__all__ = ["FLIP_FLOP", "connected", "copy_operands", "copy_registers"]

FLIP_FLOP = "TRELLIS_FF"


def copy_registers(path: Path, regions: dict[str, int]) -> int:
    """Copy each register that drives placed cells of several regions; returns the copies' number.

    The loads of such a register are cells of ``regions``, or LUTs and flip-flops with an input from
    one of them. Each copy drives the loads of one region. A register with any other load has no
    copies.

    Parameters
    ----------
    path : Path
        A Yosys netlist.
    regions : dict of int
        The region of each placed cell, by cell name.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    count = sum(_copy_in(module, _near(module, regions)) for module in netlist["modules"].values())
    write_text(path, json.dumps(netlist))
    return count


def copy_operands(path: Path) -> int:
    """Copy each register whose loads are in several PEs, for each PE; returns the copies' number.

    Only an array of one row has such copies: all its PEs read the same vector of A, and they are
    all over the device. In other arrays, few PEs share an operand register.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    count = 0
    for module in netlist["modules"].values():
        places = {name: match for name in module["cells"] if (match := PE.search(name))}
        if {int(match[1]) for match in places.values()} == {0}:
            count += _copy_in(module, {name: int(match[2]) for name, match in places.items()})
    write_text(path, json.dumps(netlist))
    return count


def connected(cells: dict) -> tuple[dict, dict]:
    """The drivers and the loads of each net of a module: lists of (cell name, port, index)."""
    drivers, loads = {}, {}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            ends = drivers if cell["port_directions"].get(port) == "output" else loads
            for index, bit in enumerate(bits):
                ends.setdefault(bit, []).append((name, port, index))
    return drivers, loads


def _near(module, regions):
    """``regions``, with the cells that placed cells drive."""
    drivers, loads = connected(module["cells"])
    near = dict(regions)
    for bit, ends in drivers.items():
        for driver, *_ in ends:
            if driver in regions:
                near |= {load: regions[driver] for load, *_ in loads.get(bit, ())}
    return near


def _copy_in(module, near):
    """Copy registers in a module, with the region of each cell that a copy may drive."""
    cells = module["cells"]
    drivers, loads = connected(cells)
    outputs = {bit for port in module["ports"].values() for bit in port["bits"]}
    numbers = [bit for bit in [*drivers, *loads] if isinstance(bit, int)]
    last = max(numbers, default=0)
    count = 0
    for name, cell in list(cells.items()):
        if cell["type"] != FLIP_FLOP:
            continue
        [bit] = cell["connections"]["Q"]
        ends = loads.get(bit, ())
        found = {near.get(load) for load, *_ in ends}
        if bit in outputs or None in found or len(found) < 2:
            continue
        for region in sorted(found)[1:]:
            count, last = count + 1, last + 1
            cells[f"{name}_copy_{region}"] = cell | {
                "connections": cell["connections"] | {"Q": [last]},
            }
            for load, port, index in ends:
                if near[load] == region:
                    cells[load]["connections"][port][index] = last
    return count
