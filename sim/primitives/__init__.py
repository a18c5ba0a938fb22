"""Models of vendors' primitives, and proofs that hardware built of them equals its twin."""

from pathlib import Path

from weft.sim.primitives.duel import duel
from weft.sim.primitives.exhaust import exhaust
from weft.sim.primitives.proof import MODELS, equal

__all__ = ["ICE40", "MODELS", "duel", "equal", "exhaust"]

ICE40 = Path(__file__).with_name("ice40.v")
