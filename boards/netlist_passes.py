"""Changes of a netlist of an ECP5 before it is placed: unused carries go, registers get copies.

nextpnr spends LUTs on unused carries at the ends of carry chains. A register whose loads are far
apart gets a copy for each region, or each PE.
"""

import itertools
import json
from pathlib import Path

from weft.boards.floorplan import PE
from weft.files import write_text

__all__ = ["copy_operands", "copy_registers", "drop_unused_carries"]

FLIP_FLOP = "TRELLIS_FF"


def drop_unused_carries(path: Path) -> int:
    """Disconnect unused carries in a Yosys netlist for an ECP5; returns their number.

    nextpnr spends two LUTs to bring a constant into a chain of CCU2C, and two to bring a carry out,
    even if it is unused. So a carry output without a reader is left open. A constant carry input is
    left open if the first half of the cell never propagates it: its LUT is 0 for all values of its
    non-constant inputs, and its sum is not read.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    count = 0
    for module in netlist["modules"].values():
        cells = module["cells"].values()
        read = {bit for port in module["ports"].values() for bit in port["bits"]}
        for cell in cells:
            for name, bits in cell["connections"].items():
                if cell["port_directions"].get(name) != "output":
                    read.update(bits)
        for cell in cells:
            if cell["type"] != "CCU2C":
                continue
            ports = cell["connections"]
            if ports["COUT"] != ["x"] and not read.intersection(ports["COUT"]):
                ports["COUT"] = ["x"]
                count += 1
            constant = ports["CIN"] in (["0"], ["1"])
            if constant and _blocks_carry(cell) and not read & set(ports["S0"]):
                ports["CIN"] = ["x"]
                count += 1
    write_text(path, json.dumps(netlist))
    return count


def _blocks_carry(cell):
    """Whether the first half of a CCU2C never propagates its carry input."""
    table = int(cell["parameters"]["INIT0"], 2)
    inputs = [cell["connections"][name][0] for name in ("A0", "B0", "C0", "D0")]
    choices = [(int(bit),) if bit in ("0", "1") else (0, 1) for bit in inputs]
    return not any(
        table >> sum(bit << n for n, bit in enumerate(bits)) & 1
        for bits in itertools.product(*choices)
    )


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
