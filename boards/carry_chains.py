"""Removal of unused carries at the ends of an ECP5's carry chains, which nextpnr spends LUTs on."""

import itertools
import json
from pathlib import Path

from weft.files import write_text

__all__ = ["drop_unused_carries"]


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
