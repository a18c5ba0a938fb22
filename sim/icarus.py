"""Compiles Verilog for Icarus Verilog's ``vvp``."""

import subprocess
from pathlib import Path

from weft.files import write_text
from weft.sim import cache, tools

__all__ = ["executable"]


def executable(kind: str, name: str, verilog: str, *, top: str) -> Path:
    """The file ``sim.vvp`` of a Verilog text, in the cache.

    Parameters
    ----------
    kind : str
        Folder of the cache.
    name : str
        Name of the design, for messages and file names.
    top : str
        The module that is simulated.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus Verilog is missing or too old, or does not compile the text.
    """
    icarus = tools.icarus()

    def make(place):
        write_text(place / f"{top}.v", verilog)
        write_text(place / "timescale", "+timescale+1ns/1ps\n")
        command = [
            str(icarus.path), "-g2012", "-o", "sim.vvp", "-f", "timescale",
            "-s", top, f"{top}.v",
        ]
        run = subprocess.run(
            command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        if run.returncode:
            log = cache.folder() / f"{name}.log"
            write_text(log, run.stdout)
            raise tools.ToolError(
                f"Icarus Verilog did not compile {name} and ended with status {run.returncode}:"
                f" {run.stdout.strip().splitlines()[-1:]}; its output is in {log}"
            )

    digest = cache.digest(Path(__file__).read_bytes(), str(icarus), top, verilog)
    return cache.entry(kind, f"{name}-{digest}", make) / "sim.vvp"
