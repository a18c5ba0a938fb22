"""Verilator's lint of the Verilog of a Config."""

import subprocess
import tempfile
from pathlib import Path

from weft.config import Config
from weft.files import write_text
from weft.sim import build, tools, verilated

__all__ = ["lint"]


def lint(config: Config) -> str:
    """Verilator's messages on the design, with the waivers of a simulation; empty without errors.

    Raises
    ------
    weft.sim.tools.ToolError
        If Verilator is missing or too old.
    """
    verilator, text = tools.verilator(), build.verilog(config)
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / "weft.v", text)
        run = subprocess.run(
            [verilator.path, "--lint-only", *verilated.WAIVERS, "--top-module", "weft", "weft.v"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
    # Warnings are errors; without them the output is a report of its work.
    return f"status {run.returncode}\n{run.stdout.strip()}" if run.returncode else ""
