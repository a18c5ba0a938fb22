"""Checks of hardware made of FPGA primitives against its behavioural twin."""

from verif.primitives.proof import cosimulate, exhaustive_check, prove_equal

__all__ = ["cosimulate", "exhaustive_check", "prove_equal"]
