"""The report of a bitstream: resources by block, clock, critical path, and a floorplan picture."""

import json
import re
from collections import Counter
from pathlib import Path

from weft.files import write_text, written_whole

__all__ = ["FILES", "floorplan_picture", "link_text", "text", "write"]

FILES = "report.md", "report.json", "floorplan.png"  # written into the bitstream's folder
COLOURS = {
    "array": "#3b6fb6", "operands": "#4fb0c6", "control": "#e0862e", "results": "#5aa454",
    "post-processing": "#b0527f", "registers": "#8c6d4f", "serial link": "#d9c02f",
    "board": "#4a4a4a",
}
FREE, CHIP = "#eef0f2", "#ffffff"
DOTS = 4, 2  # rows and columns of dots in a tile, one dot for each of its eight logic cells


def write(folder, design, seed, routed, bitstream) -> None:
    """Write `FILES` into ``folder``, and print a summary."""
    from weft.boards.blocks import cells_by_block, placed_cells
    from weft.boards.memory import has_sdram

    board, config, pnr = design.board, design.config, routed.pnr
    cells = placed_cells(routed.layout, board.device)
    blocks = cells_by_block(cells)
    page = text(design, seed, routed, bitstream.name, blocks)
    write_text(folder / "report.md", page)
    record = {
        "board": board.name, "device": board.device.name, "config": config.name,
        "clock": routed.clock, "fmax": pnr.fmax, "link": board.link,
        "other_clocks": {
            each.name: {"clock": each.required, "fmax": each.fmax} for each in routed.others
        },
        "baud": board.baud if board.link == "serial" else None, "seed": seed,
        "untimed": board.device.untimed, "used": pnr.used, "capacity": board.device.capacity,
        "blocks": blocks,
        "path": pnr.critical_path.names, "design": design.key, "bitstream": bitstream.name,
        "digests": design.digests,
    }
    write_text(folder / "report.json", json.dumps(record, indent=1) + "\n")
    floorplan_picture(folder / "floorplan.png", cells, title="\n".join(_title(design, routed)))
    print("\n".join(_title(design, routed)))
    print(f"critical path: {pnr.critical_path}")
    if has_sdram(config):
        print(_sdram_text(board))
    if untimed := board.device.untimed:
        print(f"note: {untimed}")
    print(f"{bitstream}: {bitstream.stat().st_size:,} bytes; see also report.md, floorplan.png")
    print(f"to load it: weft program {board.name} {bitstream}")


def _title(design, routed):
    """Two lines: the design and its clock; the device and the share of each resource in use."""
    device, used = design.board.device, routed.pnr.used
    shares = ", ".join(
        f"{name} {used[name] / available:.0%}"
        for name, available in device.capacity.items() if used[name]
    )
    clock = f"{routed.clock:.1f} MHz ({routed.pnr.fmax:.1f} MHz reached)"
    array = f"{design.shape}, {design.config.peak} MAC/cycle"
    return f"{design.board.name}: {array} at {clock}", f"{device.name}: {shares}"


def text(design, seed, routed, bitstream, blocks) -> str:
    """The text of ``report.md``."""
    return "\n".join([
        *_summary(design, seed, routed, bitstream), *_resources(design.board.device, blocks),
        *_path(routed.pnr.critical_path), "",
    ])


def _summary(design, seed, routed, bitstream):
    from weft.boards.memory import has_sdram

    board, pnr = design.board, routed.pnr
    title, usage = _title(design, routed)
    yield f"""\
# {board.name}

![Floorplan](floorplan.png)

{title}

{usage}

* bitstream: `{bitstream}`, design `{design.key}`, seed {seed}
* Config: `{design.config.name}`
* clock: {routed.clock:.2f} MHz required, {pnr.fmax:.2f} MHz reached, \
{pnr.fmax / routed.clock - 1:.1%} margin"""
    if untimed := board.device.untimed:
        yield f"* {untimed}"
    for each in routed.others:
        yield f"* {each.name}: {each.required:.2f} MHz required, {each.fmax:.2f} MHz reached"
    if has_sdram(board.config):
        yield f"* {_sdram_text(board)}"
    yield f"* {link_text(board)}\n"


def _sdram_text(board):
    """The chip, and the phase of its clock."""
    from weft.boards.memory import sdram_phase

    degrees = sdram_phase(board).degrees
    return (
        f"SDRAM: {board.sdram.chip.name}, whose clock comes {degrees:g} degrees after the one of"
        " the core"
    )


def link_text(board) -> str:
    """What carries the frames of a board."""
    if board.link != "serial":
        speed = "full" if "d_p" in board.usb_pins else "high"
        return f"USB: {speed} speed, serial number {board.usb_serial}"
    error = board.clock * 1e6 / board.divisor / board.baud - 1
    return (
        f"serial port: {board.baud:,} baud, {board.divisor} cycles per bit ({error:+.2%}),"
        f" on {board.bridge}"
    )


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


def floorplan_picture(path: Path, cells, *, title: str) -> None:
    """Draw ``cells``, of `weft.boards.blocks.placed_cells`, into a PNG.

    A logic tile is drawn as eight dots, one for each LUT; a dot is pale if only its flip-flop is
    used. A DSP block or a RAM is drawn as a whole tile with a frame.
    """
    import matplotlib

    matplotlib.use("Agg")
    import numpy as np
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    width, height = 2 + max(cell.x for cell in cells), 2 + max(cell.y for cell in cells)
    image = np.full((height * DOTS[0], width * DOTS[1], 3), to_rgb(FREE))
    blocks = []
    # Flip-flops first: the LUT of the same logic cell is drawn over them.
    for cell in sorted(cells, key=lambda cell: cell.resource != "FF"):
        colour = np.array(to_rgb(COLOURS[cell.group]))
        if cell.resource not in ("LUT", "FF"):
            blocks.append((cell, colour))
            continue
        row, column = divmod(_index(cell.bel), DOTS[1])
        if cell.resource == "FF":
            colour = 0.5 + colour / 2
        image[cell.y * DOTS[0] + row, cell.x * DOTS[1] + column] = colour

    size = 11 / max(width, height)
    figure = Figure(figsize=(size * width + 2.9, max(size * height, 5) + 0.9), dpi=130)
    axes = figure.add_axes((
        0.35 / figure.get_figwidth(), 0.25 / figure.get_figheight(),
        size * width / figure.get_figwidth(), size * height / figure.get_figheight(),
    ))
    axes.imshow(
        image, origin="lower", extent=(0, width, 0, height), aspect="equal",
        interpolation="nearest",
    )
    for cell, colour in blocks:
        axes.add_patch(Rectangle(
            (cell.x + 0.04, cell.y + 0.04), 0.92, 0.92, facecolor=colour, edgecolor="black",
            linewidth=0.9,
        ))
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#9aa0a6")
    counts = {group: Counter() for group in COLOURS}
    for cell in cells:
        counts[cell.group][cell.resource] += 1
    handles = [
        Patch(color=COLOURS[group], label=f"{group}\n{_counts(used)}")
        for group, used in counts.items() if used
    ]
    handles.append(Patch(facecolor=CHIP, edgecolor="black", label="framed: DSP block or RAM"))
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8,
        labelspacing=0.9, borderaxespad=0,
    )
    figure.text(
        0.35 / figure.get_figwidth(), 1 - 0.2 / figure.get_figheight(), title, va="top",
        fontsize=10, fontweight="bold",
    )
    with written_whole(path) as part:
        figure.savefig(part, format="png", metadata={"Software": None})


def _index(bel):
    """The index of a logic cell in its tile, 0 to 7, from names as ``lc3`` and ``SLICEB.COMB1``."""
    if match := re.match(r"SLICE([A-D])\.\D+(\d)", bel):
        return 2 * "ABCD".index(match[1]) + int(match[2])
    return int(re.search(r"\d", bel)[0])


def _counts(used):
    return ", ".join(f"{used[name]:,} {name}" for name in ("LUT", "DSP", "RAM", "SPRAM")
                     if used[name])
