"""A BF16 MAC cell alone: its executable simulation, test vectors, and expected sums."""

from verif.mac_cell.check import LONG_SUMS, Mismatch, check, expected_sums
from verif.mac_cell.harness import AlignedMacCell, executable, sums
from verif.mac_cell.vectors import VECTORS, Steps

__all__ = [
    "LONG_SUMS", "VECTORS", "AlignedMacCell", "Mismatch", "Steps", "check", "executable",
    "expected_sums", "sums",
]
