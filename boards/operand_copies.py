"""Copies of operand registers of an ECP5: one for each PE that a register feeds."""

import json
from pathlib import Path

from weft.boards.register_copies import FLIP_FLOP, connected

__all__ = ["copy_operands"]

_LOGIC = {"LUT4", "CCU2C"}


def copy_operands(path: Path, pes: dict[str, tuple[int, int]], squares: bool = False) -> int:
    """Copy registers that feed DSP blocks, through adders; returns the number of copies.

    An operand register feeds up to ``hop`` PEs. Each of them that has DSP blocks gets a copy beside
    its blocks, and the register keeps its other loads:

    * in an array of one row. The row is as long as the device, and its DSP blocks lie in several
      lines.
    * in an array with squares in block RAM. A PE that multiplies in logic and one with block RAM
      share the register, and draw it away from the DSP blocks.

    Other arrays are not changed: the PEs of a register are near each other there.

    Parameters
    ----------
    path : Path
        A Yosys netlist.
    pes : dict of pair of int
        Row and column of the PE of each DSP block with a site, by cell name.
    squares : bool
        The array has squares in block RAM.
    """
    if len({row for row, _ in pes.values()}) != 1 and not squares:
        return 0
    netlist = json.loads(path.read_text(encoding="utf-8"))
    count = sum(_copy_in(module, pes, squares) for module in netlist["modules"].values())
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return count


def _copy_in(module, pes, squares):
    cells = module["cells"]
    drivers, loads = connected(cells)
    fed = _feeding(cells, drivers, pes)
    last = max((bit for bit in [*drivers, *loads] if isinstance(bit, int)), default=0)
    count = 0
    for name, cell in list(cells.items()):
        if cell["type"] != FLIP_FLOP:
            continue
        ends = loads.get(cell["connections"]["Q"][0], ())
        found = {fed[load] for load, *_ in ends if load in fed}
        shared = len(found) > 1 or (squares and any(load not in fed for load, *_ in ends))
        for row, column in sorted(found) if shared else ():
            count, last = count + 1, last + 1
            cells[f"{name}_copy_{row}_{column}"] = cell | {
                "connections": cell["connections"] | {"Q": [last]},
            }
            for load, port, index in ends:
                if fed.get(load) == (row, column):
                    cells[load]["connections"][port][index] = last
    return count


def _feeding(cells, drivers, pes):
    """The PE of each cell of logic between registers and the inputs of DSP blocks."""
    fed = {}
    waiting = [(name, pe) for name, pe in pes.items() if name in cells]
    while waiting:
        name, pe = waiting.pop()
        cell = cells[name]
        for port, bits in cell["connections"].items():
            if cell["port_directions"].get(port) == "output":
                continue
            nets = [bit for bit in bits if isinstance(bit, int)]  # not "0", "1" and "x"
            for driver in [driver for net in nets for driver, *_ in drivers.get(net, ())]:
                if cells[driver]["type"] in _LOGIC and driver not in fed:
                    fed[driver] = pe
                    waiting.append((driver, pe))
    return fed
