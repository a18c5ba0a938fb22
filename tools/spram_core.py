"""Write the tables of ``docs/chip.md`` about a core whose memory is the SPRAM of an iCE40UP5K.

    WEFT_NETWORKS=folder python -m tools.spram_core
"""

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from tools.network_tables import replaced, write
from weft.boards.devices import DEVICES
from weft.boards.toolchain import Toolchain, ToolchainError, to_rtlil
from weft.chip.config import ChipConfig
from weft.config import Config
from weft.hw.serial.accelerator import SerialAccelerator
from weft.network.loading import load
from weft.sim.network_runner import SimulatedRunner

__all__ = ["PATH", "block_of", "page"]

PATH = Path(__file__).parent.parent / "docs" / "chip.md"
CHIP = ChipConfig(
    core=Config(
        rows=1, cols=4, depth=4, lanes=1, requantize="tflite", activation="none", target="ice40up",
        multiplier="plain", scale_cycles=8,
    ),
    words=32768, b_words=512, lines=256, read_vectors=1,
)
GOALS = {"kws_int8": 20, "resnet8_int8": 60}  # ms
CLOCK = 36  # MHz
DIVISOR = 12  # cycles of a bit of the serial port, at 3 Mbaud
_BLOCK = re.compile(r"(?:\$\w+?_)?(?:core\.([a-z_]+)\.|(link|host_port|receiver|transmitter)\.)")
_CELLS = {"SB_LUT4": "LUT4", "SB_CARRY": "CARRY", "SB_RAM40_4K": "RAM", "SB_MAC16": "DSP"}


def block_of(name: str) -> str:
    """The block of a cell, from its hierarchical name; "other": wires and registers between blocks.
    """
    found = _BLOCK.match(name)
    return found[1] or found[2] if found else "other"


def cells(netlist: Path) -> dict[str, Counter]:
    """The cells of each block, largest first, and the sum of all."""
    counts: dict[str, Counter] = {}
    for name, cell in json.loads(netlist.read_text())["modules"]["top"]["cells"].items():
        kind = "FF" if cell["type"].startswith("SB_DFF") else _CELLS.get(cell["type"])
        if kind:
            counts.setdefault(block_of(name), Counter())[kind] += 1
    ordered = sorted(counts.items(), key=lambda entry: -entry[1]["LUT4"] - entry[1]["FF"])
    return dict(ordered) | {"all": sum(counts.values(), Counter())}


def area(folder: Path) -> str:
    """The table of cells, and what place and route says."""
    device, tools = DEVICES["iCE40UP5K"], Toolchain(folder)
    tools.set_up()
    rtlil = to_rtlil(SerialAccelerator(CHIP, divisor=DIVISOR))
    netlist = tools.synthesize(rtlil, device, folder / "spram-core")
    kinds = "LUT4", "CARRY", "FF", "RAM", "DSP"
    lines = [f"| block | {' | '.join(kinds)} |", "|---|" + "---:|" * len(kinds)]
    lines += [
        f"| {block} | {' | '.join(f'{used[kind]:,}' for kind in kinds)} |"
        for block, used in cells(netlist.folder / "top.json").items()
    ]
    try:
        fit = f"fmax {tools.place(netlist, device, 1).fmax:.1f} MHz"
    except ToolchainError as error:
        fit = str(error)
    return "\n".join([*lines, "", f"Place and route: {fit}."])


def times(folder: Path) -> str:
    """The table of cycles; all bytes must be the recorded ones."""
    columns = (
        "network", "memory, bytes", "cycles, simulated", "cycles, predicted",
        f"ms at {CLOCK} MHz", "goal, ms",
    )
    lines = [f"| {' | '.join(columns)} |", "|---|---:|---:|---:|---:|---:|"]
    runner = SimulatedRunner(CHIP)
    for name, goal in GOALS.items():
        program = load(folder / f"{name}.tflite").compile(CHIP)
        with np.load(folder / f"{name}.npz") as record:
            x, wanted = record["model_in"][0], record["model_out_tflm"][0]
        session = program.open(runner)
        if not np.array_equal(session(x).ravel(), wanted.ravel()):
            raise RuntimeError(f"{name}: the results of the core must be the recorded ones")
        lines.append(
            f"| {name} | {program.memory_used:,} | {session.cycles:,} | {program.cycles:,} |"
            f" {session.cycles / CLOCK / 1000:.1f} | {goal} |"
        )
    runner.close()
    return "\n".join(lines)


def page(folder: Path) -> str:
    """The text of ``docs/chip.md`` with new tables."""
    build = Path(os.environ.get("WEFT_BUILD", "build")).absolute()
    return replaced(PATH, {
        "make spram-core, cycles": times(folder), "make spram-core, cells": area(build),
    })


if __name__ == "__main__":
    sys.exit(write({PATH: page}))
