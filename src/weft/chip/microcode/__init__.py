"""The microprogram of a core for networks with one row: its instructions, and its text."""

from weft.chip.microcode.assembler import Assembler
from weft.chip.microcode.instructions import Condition, In, Kind, Op, Out, Strobe, Wait
from weft.chip.microcode.program import MicroProgram, assemble

__all__ = [
    "Assembler", "Condition", "In", "Kind", "MicroProgram", "Op", "Out", "Strobe", "Wait",
    "assemble",
]
