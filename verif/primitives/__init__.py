"""Checks of hardware made of FPGA primitives against its behavioural twin."""

from verif.primitives.cosimulate import cosimulate
from verif.primitives.exhaustive_check import exhaustive_check
from verif.primitives.proof import prove_equal

__all__ = ["cosimulate", "exhaustive_check", "prove_equal"]
