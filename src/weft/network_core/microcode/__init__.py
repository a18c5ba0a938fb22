"""The microprogram of a network core with one row: its instructions, and its text."""

from weft.network_core.microcode.instructions import (
    Assembler,
    Condition,
    In,
    Kind,
    Op,
    Out,
    Strobe,
    Wait,
)
from weft.network_core.microcode.program import MicroProgram, assemble

__all__ = [
    "Assembler", "Condition", "In", "Kind", "MicroProgram", "Op", "Out", "Strobe", "Wait",
    "assemble",
]
