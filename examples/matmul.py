"""A matrix product on a core, in ten lines: python examples/matmul.py"""

import numpy as np

from weft import Accelerator, Config
from weft.host import GoldenTransport

a = np.random.default_rng(1).integers(-128, 128, (100, 64), dtype=np.int8)
b = np.random.default_rng(2).integers(-128, 128, (64, 32), dtype=np.int8)

# GoldenTransport is the core in NumPy. weft.sim.transport.SimTransport is the simulated hardware.
with Accelerator(GoldenTransport(Config(rows=4, cols=4, depth=4))) as acc:
    c, stats = acc.matmul(a, b, record=True)

assert np.array_equal(c, a.astype(int) @ b)
print(f"{stats.cycles} cycles, {stats.utilization:.1%} of the peak")
