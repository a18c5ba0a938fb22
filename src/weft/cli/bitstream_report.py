"""The report of a bitstream: resources by block, clock, critical path, and a floorplan picture."""

import json
from collections import Counter

from weft.files import write_text

__all__ = ["FILES", "text", "write"]

FILES = "report.md", "report.json", "floorplan.png"  # written into the bitstream's folder


def write(folder, design, seed, routed, bitstream) -> None:
    """Write `FILES` into ``folder``, and print a summary."""
    from weft.boards.blocks import cells_by_block, placed_cells
    from weft.cli.floorplan_picture import floorplan_picture

    board, config, pnr = design.board, design.config, routed.pnr
    cells = placed_cells(routed.layout, board.device)
    blocks = cells_by_block(cells)
    page = text(design, seed, routed, bitstream.name, blocks)
    write_text(folder / "report.md", page)
    record = {
        "board": board.name, "device": board.device.name, "config": config.name,
        "clock": routed.clock, "fmax": pnr.fmax, "baud": board.baud, "seed": seed,
        "used": pnr.used, "capacity": board.device.capacity, "blocks": blocks,
        "path": pnr.critical_path.names, "design": design.key, "bitstream": bitstream.name,
    }
    write_text(folder / "report.json", json.dumps(record, indent=1) + "\n")
    floorplan_picture(folder / "floorplan.png", cells, title="\n".join(_title(design, routed)))
    print("\n".join(_title(design, routed)))
    print(f"critical path: {pnr.critical_path}")
    print(f"{bitstream}: {bitstream.stat().st_size:,} bytes; see also report.md, floorplan.png")
    print(f"to load it: weft program {board.name} {bitstream}")


def _title(design, routed):
    """Two lines: the design and its clock; the device and the share of each resource in use."""
    c, device, used = design.array, design.board.device, routed.pnr.used
    shares = ", ".join(
        f"{name} {used[name] / available:.0%}"
        for name, available in device.capacity.items() if used[name]
    )
    clock = f"{routed.clock:.1f} MHz ({routed.pnr.fmax:.1f} MHz reached)"
    array = f"{c.rows} x {c.cols} PEs of {c.depth} MAC, {design.config.peak} MAC/cycle"
    return f"{design.board.name}: {array} at {clock}", f"{device.name}: {shares}"


def text(design, seed, routed, bitstream, blocks) -> str:
    """The text of ``report.md``."""
    return "\n".join([
        *_summary(design, seed, routed, bitstream), *_resources(design.board.device, blocks),
        *_path(routed.pnr.critical_path), "",
    ])


def _summary(design, seed, routed, bitstream):
    board, pnr = design.board, routed.pnr
    title, usage = _title(design, routed)
    error = board.clock * 1e6 / board.divisor / board.baud - 1
    yield f"""\
# {board.name}

![Floorplan](floorplan.png)

{title}

{usage}

* bitstream: `{bitstream}`, design `{design.key}`, seed {seed}
* Config: `{design.config.name}`
* clock: {routed.clock:.2f} MHz required, {pnr.fmax:.2f} MHz reached, \
{pnr.fmax / routed.clock - 1:.1%} margin
* serial port: {board.baud:,} baud, {board.divisor} cycles per bit ({error:+.2%}), \
on {board.bridge}
"""


def _resources(device, blocks):
    """One row per block, in groups."""
    from weft.boards.blocks import GROUPS

    names = [name for name in device.capacity if any(used[name] for used in blocks.values())]
    yield from (
        "## Resources", "", f"| block | group | {' | '.join(names)} |",
        f"|---|---|{'---:|' * len(names)}",
    )
    for group, members in GROUPS.items():
        for block in members:
            if block in blocks:
                yield f"| {block} | {group} | {_row(blocks[block], names)} |"
    total = sum(blocks.values(), Counter())
    yield f"| **all** | | {_row(total, names)} |"
    yield f"| **device** | {device.name} | {_row(device.capacity, names)} |"
    yield "\nCells are counted by the names that synthesis gave them: if it merged cells of two"
    yield "blocks into one, that cell counts for only one of the blocks.\n"


def _path(critical_path):
    yield "## Critical path"
    yield f"\n{critical_path.logic:.1f} ns in cells, {critical_path.routing:.1f} ns between them:\n"
    yield from (f"1. `{name}`" for name in critical_path.names)


def _row(used, names):
    return " | ".join(f"{used[name]:,}" for name in names)
