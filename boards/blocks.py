"""What a placed design is made of: its cells by block of the hierarchy, and where they are."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from weft.boards.devices import Device

__all__ = ["GROUPS", "Cell", "placed_cells", "cells_by_block"]

# Blocks of the core by what they are for. The others are named by `_block`.
GROUPS = {
    "array": ("array",),
    "operands": ("feeder", "loader"),
    "control": ("decoder", "job_table", "tile_gate", "pass_builder", "sequencer", "core"),
    "results": ("drain", "buffer", "pending", "scheduler", "lanes", "reorder", "packer"),
    "post-processing": ("corrector", "epilogue"),
    "registers": ("registers",),
    "serial link": ("link", "receiver", "transmitter", "accelerator"),
    "board": ("board", "nextpnr"),
}
_GROUP = {block: group for group, blocks in GROUPS.items() for block in blocks}
_CORE = re.compile(r"(?:\$\w+?_)?accelerator\.core\.(?:(\w+)\.)?")
_LINK = re.compile(r"(?:\$\w+?_)?accelerator\.(?:(link|receiver|transmitter)\.)?")
_BEL = re.compile(r"X(\d+)/Y(\d+)/(.+)")


@dataclass(frozen=True)
class Cell:
    """A cell that was placed.

    Attributes
    ----------
    block, group : str
        Of `GROUPS`.
    resource : str
        One of `weft.boards.devices.RESOURCES`.
    registered : bool
        Of an iCE40's logic cells: its flip-flop is used.
    x, y : int
    bel : str
        Which one of its tile.
    """

    block: str
    resource: str
    registered: bool
    x: int
    y: int
    bel: str

    @property
    def group(self) -> str:
        """What the block is for."""
        return _GROUP[self.block]


def placed_cells(layout: Path, device: Device) -> list[Cell]:
    """The cells of a netlist that nextpnr wrote, as far as they are resources of ``device``."""
    [module] = json.loads(Path(layout).read_text(encoding="utf-8"))["modules"].values()
    found = []
    for name, cell in module["cells"].items():
        resource = device.resource(cell["type"])
        place = _BEL.fullmatch(cell["attributes"].get("NEXTPNR_BEL", ""))
        if resource in device.capacity and place:
            registered = cell["parameters"].get("DFF_ENABLE", "0").endswith("1")
            x, y, bel = place.groups()
            found.append(Cell(_block(name), resource, registered, int(x), int(y), bel))
    return found


def _block(name):
    """The block that a cell belongs to, going by the name that synthesis gave it."""
    if found := _CORE.match(name):
        return found[1] if found[1] in _GROUP else "core"  # `core`: what is between its blocks
    if found := _LINK.match(name):
        return found[1] or "accelerator"
    return "nextpnr" if name.startswith("$nextpnr") else "board"


def cells_by_block(found: list[Cell]) -> dict[str, Counter]:
    """Resources by block, in the order of `GROUPS`."""
    counted = {block: Counter() for block in _GROUP}
    for cell in found:
        counted[cell.block][cell.resource] += 1
        if cell.registered:
            counted[cell.block]["FF"] += 1
    return {block: used for block, used in counted.items() if used}
