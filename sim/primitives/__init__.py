"""Models of FPGA primitives, and checks of hardware made of them against its behavioural twin."""

from weft.sim.primitives.cosimulate import cosimulate
from weft.sim.primitives.exhaustive_check import exhaustive_check
from weft.sim.primitives.models import ECP5_MODELS, ICE40_MODELS
from weft.sim.primitives.proof import prove_equal

__all__ = ["ECP5_MODELS", "ICE40_MODELS", "cosimulate", "exhaustive_check", "prove_equal"]
