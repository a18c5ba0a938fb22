"""Netlists of small components for an ECP5, and simulations of their gates."""

import json
import subprocess
import tempfile
from pathlib import Path

from weft.boards import netlist_passes
from weft.boards.devices import DEVICES
from weft.boards.toolchain import SYNTHESIS, to_rtlil
from weft.sim import build, tools
from weft.sim.gates import build_model, verilog

__all__ = ["gate_model", "synthesized"]

PINS = {name: name for name in ("clk", "rst", "rx", "tx")}


def synthesized(component) -> dict:
    """The netlist of a component with a serial port, by the toolchain, but any version of Yosys."""
    script = SYNTHESIS.format(synthesis=DEVICES["LFE5U-25F"].flow.synthesis)
    build.folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build.folder()) as place:  # Yosys does not see /tmp
        folder = Path(place)
        (folder / "top.il").write_text(to_rtlil(component))
        (folder / "top.ys").write_text(script)
        subprocess.run(
            [tools.yosys().path, "-q", "-s", "top.ys"], cwd=folder, check=True, timeout=1800,
        )
        netlist_passes.drop_unused_carries(folder / "top.json")
        return json.loads((folder / "top.json").read_text())


def gate_model(name: str, netlist: dict, folder: Path) -> Path:
    """The program of a simulation of a netlist; ``folder`` is for a file."""
    (folder / "top.json").write_text(json.dumps(netlist))
    return build_model(name, verilog(folder / "top.json", "ecp5", PINS, seed=1))
