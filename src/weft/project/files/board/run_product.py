"""Multiply matrices on the core: python3 run.py [board, sim, golden, /dev/ttyUSB1, tcp://host:port]."""

import sys
from pathlib import Path

import numpy as np

from weft import Accelerator
from weft.cli import run_program
from weft.designs import design_from_toml

DESIGN = design_from_toml(Path(__file__).with_name("design.toml"))


def open_core(on):
    """The core that a name means; "sim" is a simulated one without a serial port."""
    if on in ("board", "sim"):
        from weft.sim.transport import SimBoardTransport, SimTransport

        simulated = SimBoardTransport if on == "board" else SimTransport
        return Accelerator(simulated(DESIGN, say=print), DESIGN)
    return Accelerator(on, DESIGN)


def main(on="board"):
    """Compute a product, and compare it with NumPy."""
    rng = np.random.default_rng(1)
    a = rng.integers(-128, 128, (20, 30), np.int8)
    b = rng.integers(-128, 128, (30, 10), np.int8)
    with open_core(on) as core:
        c, record = core.matmul(a, b, record=True)
    equal = np.array_equal(c, a.astype(int) @ b.astype(int))
    print(f"20 x 30 x 10 on {on}: {record.cycles:,} cycles, {record.utilization:.1%} of the peak,"
          f" {'equal to' if equal else 'DIFFERENT from'} NumPy")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(run_program(main))
