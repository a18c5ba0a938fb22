"""Copies of registers of an ECP5 whose loads are far apart: one for each region."""

import json
from pathlib import Path

__all__ = ["FLIP_FLOP", "connected", "copy_registers"]

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
    count = 0
    for module in netlist["modules"].values():
        count += _copy_in(module, regions)
    path.write_text(json.dumps(netlist), encoding="utf-8")
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


def _copy_in(module, regions):
    cells = module["cells"]
    drivers, loads = connected(cells)
    outputs = {bit for port in module["ports"].values() for bit in port["bits"]}
    near = dict(regions)  # with the cells that placed cells drive
    for bit, ends in drivers.items():
        for driver, *_ in ends:
            if driver in regions:
                near |= {load: regions[driver] for load, *_ in loads.get(bit, ())}
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
