"""Compiles the simulation of the SoC with Verilator, and writes the contents of its SDRAM."""

import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

__all__ = ["SDRAM_ROW", "compile_model", "write_sdram"]

MAIN = files("weft.project.files.litex") / "main.cpp"  # of the SoC that weft new makes
BANKS, COLUMNS = 4, 512  # of the SDRAM; a column has 16 bits
SDRAM_ROW = BANKS * COLUMNS // 2  # words of 32 bits in the same row of all banks


def write_sdram(data: bytes, gateware: Path) -> None:
    """Write bytes, for the start of the SDRAM, to the files that its model reads.

    The model has a memory of columns for each bank. Consecutive bytes fill a row of one bank after
    the other, before the next row.
    """
    verilog = (gateware / "sim.v").read_text(encoding="utf-8")
    memories = re.findall(r"^reg \[15:0\] (\w+)\[0:\d+\];", verilog, re.M)
    assert len(memories) == BANKS
    rows = np.frombuffer(data + bytes(-len(data) % (4 * SDRAM_ROW)), "<u2")
    for bank, name in enumerate(memories):
        columns = rows.reshape(-1, BANKS, COLUMNS)[:, bank].ravel()
        text = "\n".join(f"{column:04x}" for column in columns)
        (gateware / f"sim_{name}.init").write_text(text, encoding="utf-8")


def compile_model(gateware: Path, kit: Path) -> Path:
    """Compile the SoC; the path of the program.

    The program reads the contents of the memories from files in ``gateware``.
    """
    from pythondata_cpu_vexriscv import data_location

    cores = sorted(map(str, kit.glob("*.v")))  # the core, and the models of its primitives
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3",
        "--x-assign", "fast", "--x-initial", "fast", "--no-timing", "-Wno-fatal", "-Wno-lint",
        "-Wno-style", "-Wno-TIMESCALEMOD", "-Wno-UNOPTFLAT", "--top-module", "sim", "--Mdir", "obj",
        "-CFLAGS", "-O1", "sim.v", *cores, str(Path(data_location) / "VexRiscv.v"),
        str(MAIN),
    ]
    # Without this option Verilator's makefile fails to link its precompiled header.
    flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include".strip()
    done = subprocess.run(
        command, cwd=gateware, capture_output=True, text=True,
        env={**os.environ, "MAKEFLAGS": flags},
    )
    if done.returncode:
        sys.exit(f"Verilator failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return gateware / "obj" / "Vsim"
