"""The cells of a placed design: their position, and the block of the design they belong to."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.boards.devices import Device

__all__ = [
    "GROUPS", "Cell", "block_of", "cells_by_block", "latest_arrivals", "packed_by_block",
    "placed_cells",
]

# Blocks of the design by function. The names inside the core are the names of its submodules.
GROUPS = {
    "array": ("array", "columns"),
    "operands": (
        "feeder", "loader", "memory", "read_arbiter", "write_arbiter", "map_reader", "buffer_b",
        "buffer_lines", "buffer_table", "port", "loads", "weights", "bias", "multiplier", "shift",
        "table",
    ),
    "control": (
        "decoder", "job_table", "tile_gate", "pass_builder", "sequencer", "list_reader", "engine",
        "steps", "core",
    ),
    "results": ("drain", "buffer", "pending", "scheduler", "lanes", "reorder", "packer", "output"),
    "post-processing": ("corrector", "epilogue"),
    "registers": ("registers",),
    "serial link": ("link", "host_port", "receiver", "transmitter", "usb", "accelerator"),
    "board": ("board", "nextpnr"),
}
_GROUP = {block: group for group, blocks in GROUPS.items() for block in blocks}
# A board has an accelerator; the accelerator alone has no prefix. A block with the name of a signal
# has a number behind its name.
_CORE = re.compile(r"(?:\$\w+?_)?(?:accelerator\.)?core\.(?:(\w+)(?:\$\d+)?\.)?")
_LINK = re.compile(r"(?:\$\w+?_)?(?:accelerator\.)?(link|host_port|receiver|transmitter|usb)\.")
_ACCELERATOR = re.compile(r"(?:\$\w+?_)?accelerator\.")
_BEL = re.compile(r"X(\d+)/?Y(\d+)/(.+)")


@dataclass(frozen=True)
class Cell:
    """One placed cell.

    Attributes
    ----------
    block, group : str
        The block of the design and its function, both as in `GROUPS`.
    resource : str
        One of `weft.boards.devices.RESOURCES`.
    registered : bool
        The flip-flop of the logic cell is used; iCE40 only.
    x, y : int
        Coordinates of the tile, as nextpnr counts them.
    bel : str
        Name of the cell's position within the tile.
    """

    block: str
    resource: str
    registered: bool
    x: int
    y: int
    bel: str

    @property
    def group(self) -> str:
        """The function of the block."""
        return _GROUP[self.block]


def placed_cells(layout: Path, device: Device) -> list[Cell]:
    """The cells in a netlist written by nextpnr that are resources of ``device``."""
    cells = []
    for name, resource, registered, cell in _cells(layout, device):
        if position := _BEL.fullmatch(cell["attributes"].get("NEXTPNR_BEL", "")):
            x, y, bel = position.groups()
            cells.append(Cell(block_of(name), resource, registered, int(x), int(y), bel))
    return cells


def packed_by_block(netlist: Path, device: Device) -> dict[str, Counter]:
    """As `cells_by_block`, of a netlist that nextpnr has packed and not placed."""
    cells = ((block_of(name), *facts) for name, *facts, _ in _cells(netlist, device))
    return _counted(cells)


def _cells(path, device):
    """Yield name, resource, whether its flip-flop is used, and all facts of each cell."""
    [module] = json.loads(Path(path).read_text(encoding="utf-8"))["modules"].values()
    for name, cell in module["cells"].items():
        resource = device.resource(cell["type"])
        if resource in device.capacity:
            registered = cell["parameters"].get("DFF_ENABLE", "0").endswith("1")
            yield name, resource, registered, cell


def block_of(name: str) -> str:
    """The block that a cell belongs to, from the hierarchical name that synthesis gave the cell."""
    if match := _CORE.match(name):
        return match[1] if match[1] in _GROUP else "core"  # logic between the core's blocks
    if match := _LINK.match(name):
        return match[1]
    if _ACCELERATOR.match(name):
        return "accelerator"
    return "nextpnr" if name.startswith("$nextpnr") else "board"


def cells_by_block(cells: list[Cell]) -> dict[str, Counter]:
    """The number of cells of each resource by block, in the order of `GROUPS`."""
    return _counted((cell.block, cell.resource, cell.registered) for cell in cells)


def _counted(cells):
    """The cells by block, from their blocks, resources, and whether a flip-flop is used."""
    counts: dict[str, Counter] = {block: Counter() for block in _GROUP}
    for block, resource, registered in cells:
        counts[block][resource] += 1
        if registered:
            counts[block]["FF"] += 1
    return {block: used for block, used in counts.items() if used}


def latest_arrivals(report: Mapping[str, Any]) -> dict[str, float]:
    """Nanoseconds from a clock edge to the latest arrival at a register, by the register's block.

    The blocks have the names of `weft.boards.blocks.GROUPS`; the latest one comes first. Paths
    between two clocks do not count. An arrival contains the delay of the clock's network to the
    register that the path starts at, but not the setup time of the register at its end.

    Parameters
    ----------
    report : dict
        A report of nextpnr, with ``--detailed-timing-report``.
    """
    latest: dict[str, float] = {}
    for net in report["detailed_net_timings"]:
        for endpoint in net["endpoints"]:
            if endpoint["event"] == net["event"]:
                block, delay = block_of(endpoint["cell"]), max(endpoint["delay"])
                latest[block] = max(delay, latest.get(block, 0.0))
    return dict(sorted(latest.items(), key=lambda item: -item[1]))
