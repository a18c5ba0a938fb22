"""Compiles Verilog for Icarus Verilog's ``vvp``."""

import subprocess
from pathlib import Path

from weft.sim import cache, tools

__all__ = ["executable"]

# Writes a trace of all signals to the folder in which the simulation runs.
_DUMP = """
module dump;
    initial begin
        $dumpfile("{top}.fst");
        $dumpvars(0, {top});
    end
endmodule
"""


def executable(kind: str, name: str, verilog: str, *, top: str, waves: bool = False) -> Path:
    """The file ``sim.vvp`` of a Verilog text, in the cache.

    Parameters
    ----------
    kind : str
        Folder of the cache.
    name : str
        Name of the design, for messages and file names.
    top : str
        The module that is simulated.
    waves : bool
        Whether a simulation writes ``<top>.fst`` to the folder in which it runs.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus Verilog is missing or too old, or does not compile the text.
    """
    icarus = tools.icarus()
    text = verilog + _DUMP.format(top=top) if waves else verilog
    tops = [top, *(["dump"] if waves else [])]

    def make(place):
        (place / f"{top}.v").write_text(text, encoding="utf-8")
        (place / "timescale").write_text("+timescale+1ns/1ps\n", encoding="utf-8")
        command = [
            str(icarus.path), "-g2012", "-o", "sim.vvp", "-f", "timescale",
            *(word for module in tops for word in ("-s", module)), f"{top}.v",
        ]
        run = subprocess.run(
            command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        if run.returncode:
            log = cache.folder() / f"{name}.log"
            log.write_text(run.stdout, encoding="utf-8")
            raise tools.ToolError(
                f"Icarus Verilog did not compile {name} and ended with status {run.returncode}:"
                f" {run.stdout.strip().splitlines()[-1:]}; its output is in {log}"
            )

    digest = cache.digest(Path(__file__).read_bytes(), str(icarus), *tops, text)
    return cache.entry(kind, f"{name}-{digest}", make) / "sim.vvp"
