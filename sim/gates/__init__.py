"""Netlists, as synthesis and routing leave them, simulated cell by cell at their serial port."""

from pathlib import Path

from weft.sim import verilated
from weft.sim.gates.gate_test import GateTest, check_gates
from weft.sim.gates.netlist import FAMILIES, UnsupportedCell, verilog
from weft.sim.gates.simulator import HARNESS, GateSim, GateSimError

__all__ = [
    "FAMILIES", "GateSim", "GateSimError", "GateTest", "UnsupportedCell", "build_model",
    "check_gates", "verilog",
]


def build_model(name: str, text: str, say=lambda text: None) -> Path:
    """The program for `GateSim` that simulates the ``text`` of `verilog`; built once.

    Raises `weft.sim.tools.ToolError` where a tool is missing or does not compile it.
    """
    return verilated.executable(
        "gates", name, [text], lambda: text, HARNESS, top="gates", large=True,
        say=lambda: say(f"compiling the gates of {name} (once, some minutes)"),
    )
