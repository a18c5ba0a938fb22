"""The golden model of a network core: it executes lists on the bytes of a memory.

`run_list` executes a list. It computes every vector number by multiplication from the fields of the
descriptors; the hardware adds steps. So the two share no address arithmetic.
"""

from weft.golden.network_core.job import write_pixels
from weft.golden.network_core.memory import NetworkCoreBuffers
from weft.golden.network_core.runner import ListOutcome, run_list

__all__ = ["NetworkCoreBuffers", "ListOutcome", "run_list", "write_pixels"]
