"""Models of vendors' primitives, and proofs that hardware built of them equals its twin."""

from pathlib import Path

from weft.sim.primitives.cosimulate import cosimulate
from weft.sim.primitives.exhaustive_check import exhaustive_check
from weft.sim.primitives.proof import MODELS, equal

__all__ = ["ICE40", "MODELS", "cosimulate", "equal", "exhaustive_check"]

ICE40 = Path(__file__).with_name("ice40.v")
