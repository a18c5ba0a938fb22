"""A BF16 MAC cell alone: its executable simulation, test vectors, and expected sums."""

from verif.mac_cell.check import Mismatch, check, expected_sums
from verif.mac_cell.harness import AlignedMacCell, executable, sums
from verif.mac_cell.long_sums import LONG_SUMS
from verif.mac_cell.steps import Steps
from verif.mac_cell.vectors import VECTORS

__all__ = [
    "LONG_SUMS", "VECTORS", "AlignedMacCell", "Mismatch", "Steps", "check", "executable",
    "expected_sums", "sums",
]
