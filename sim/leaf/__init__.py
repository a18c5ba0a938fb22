"""A BF16 leaf alone: as a program, what it is fed with, and what it must answer."""

from weft.sim.leaf.bench import LeafBench, program, sums
from weft.sim.leaf.check import Mismatch, check, wanted
from weft.sim.leaf.loops import LOOPS
from weft.sim.leaf.steps import Steps
from weft.sim.leaf.vectors import VECTORS

__all__ = [
    "LOOPS", "VECTORS", "LeafBench", "Mismatch", "Steps", "check", "program", "sums", "wanted",
]
