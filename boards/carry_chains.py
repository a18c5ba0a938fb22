"""The ends of carry chains: where a netlist says what nobody needs, place and route pays for it."""

import itertools
import json
from pathlib import Path

__all__ = ["drop_unused_carries"]


def drop_unused_carries(path: Path) -> int:
    """Let go of carries that nobody reads, in a netlist of Yosys for an ECP5; how many there were.

    nextpnr takes two LUTs to bring a constant into a chain of CCU2C, and two to bring out a carry,
    read or not. So a carry out that nobody reads gets no net, and a constant carry in none where
    the first half of the cell never lets it through: its LUT is 0 whatever its free inputs are, and
    its sum is not read.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    loose = 0
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
                loose += 1
            if ports["CIN"] in (["0"], ["1"]) and _stops(cell) and not read & set(ports["S0"]):
                ports["CIN"] = ["x"]
                loose += 1
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return loose


def _stops(cell):
    """Whether no carry goes through the first half of a CCU2C."""
    table = int(cell["parameters"]["INIT0"], 2)
    inputs = [cell["connections"][name][0] for name in ("A0", "B0", "C0", "D0")]
    choices = [(int(bit),) if bit in ("0", "1") else (0, 1) for bit in inputs]
    return not any(
        table >> sum(bit << n for n, bit in enumerate(bits)) & 1
        for bits in itertools.product(*choices)
    )
