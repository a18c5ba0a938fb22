"""A program on the simulated top.v: it multiplies matrices and counts cycles: make run."""

import cocotb
import numpy as np
from weft_link import SimulatedCore

CYCLES = 0x1004


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def program(dut):
    """Compute a product, and compare it with NumPy."""
    top, rng = await SimulatedCore.start(dut, seed=1), np.random.default_rng(1)
    a = rng.integers(-128, 128, (20, 30), np.int8)
    b = rng.integers(-128, 128, (30, 10), np.int8)
    await top.access(CYCLES, 0)
    c = await top.multiply(a, b)
    cycles = (await top.access(CYCLES))[0]
    assert np.array_equal(c, a.astype(int) @ b.astype(int)), "different from NumPy"
    print(f"20 x 30 x 10 over Wishbone: {cycles:,} cycles, equal to NumPy")
