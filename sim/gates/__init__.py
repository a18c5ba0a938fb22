"""Simulation of a netlist after synthesis or routing, cell by cell, at its serial port."""

from pathlib import Path

from weft.sim import verilated
from weft.sim.gates.gate_language import check_language
from weft.sim.gates.gate_network import check_network
from weft.sim.gates.gate_test import HARNESS, GateSim, GateSimError, GateTest, check_gates
from weft.sim.gates.netlist import FAMILIES, UnsupportedCell, verilog

__all__ = [
    "FAMILIES", "GateSim", "GateSimError", "GateTest", "UnsupportedCell", "build_model",
    "check_gates", "check_language", "check_network", "verilog",
]


def build_model(name: str, text: str, say=lambda text: None) -> Path:
    """Compile the ``text`` of `verilog` to a program for `GateSim`; compiled only once.

    Raises `weft.sim.tools.ToolError` if a tool is missing or the compilation fails.
    """
    return verilated.executable(
        "gates", name, [text], lambda: text, HARNESS, top="gates", large=True,
        say=lambda: say(f"compiling the gates of {name} (once, takes some minutes)"),
    )
