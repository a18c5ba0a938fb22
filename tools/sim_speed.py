"""Measures the speed of the simulated accelerator, and writes ``docs/sim-speed.md``.

    python -m tools.sim_speed

Exit code 1 if the largest array is slower than its minimum.
"""

import resource
import sys
from pathlib import Path

import numpy as np

from weft import Accelerator
from weft.config import Config
from weft.golden.matmul import matmul
from weft.sim import build
from weft.sim.transport import SimTransport

PATH = Path(__file__).parent.parent / "docs" / "sim-speed.md"
LARGEST, MINIMUM = Config(rows=16, cols=16), 700_000
CONFIGS = [Config(rows=4, cols=4, depth=4), Config(rows=8, cols=8), LARGEST]
SHAPE = 1024, 512, 512
RUNS = 5
HEAD = f"""\
# Speed of the simulation

Speed of the Verilated accelerator behind `SimTransport` on one processor core, for a product of
{" x ".join(map(str, SHAPE))}, with the loading of its operands. It is the best of {RUNS} runs:
other work on the machine makes a run up to a third slower. The processor time includes only the
process of the model, with its start and end; the driver runs in another process. `make sim-speed`
writes this page, and fails if 16x16x1 is below {MINIMUM:,} cycles/s. Last run on one core of an
x86-64 server.

| design | cycles | processor time | cycles/s | MAC/s |
|---|---:|---:|---:|---:|
"""
TAIL = """
## What takes the time

With resets, the function that computes all registers takes 90 % of the time at 16x16x1. The
harness and its pipe take 3 %, and Verilator's other code takes the rest.

Measured at 16x16x1, medians of five runs that took turns with the model they are compared with.
The changes in bold are kept.

| change | speed | compilation |
|---|---:|---:|
| **no reset: registers start with the values that a reset gives them** | +12 % | -15 % |
| **then Yosys flattens, finds enables, merges registers** | +24 % | -10 % |
| no reset, and the C++ compiler with `-O2` or `-O3` instead of `-O1` | 0 % | +50 % |
| no reset, and `-O2 -march=native` | -10 % | +30 % |
| no reset, and `-O3 -march=native` | -4 % | +50 % |
| no reset, and `-O1 -fno-if-conversion` | -4 % | 0 % |
| no reset, and `-Os` | -27 % | +50 % |
| with resets: Yosys flattens, merges registers, finds enables and resets | +18 % | +14 % |
| the first two, and `-O2` | +2 % | +20 % |
| the first two, and `-fno-dfg` of Verilator | -8 % | +20 % |
| the first two, and `opt -full`, `wreduce` of Yosys | 0 % | +40 % |
| **the first two, and an index shifts; sign extensions with shifts** | +26 % | 0 % |
| ... and `-O2` | 0 % | +40 % |
| ... and the profile of a run (`-fprofile-use`), `-O1` or `-O2` | 0 % | +150 % |
| ... and `-fno-dfg` of Verilator | 0 % | 0 % |
| the first two, and no copies of sums, by hand in the C++ | +12 to +23 % | 0 % |

An index shifts with `pmux2shiftx` of Yosys. `sim/sign_extension.h` has the sign extensions.
Verilator copies the sum of each PE in each cycle, because the sum reads itself, and the chain of
results reads it.

A cycle of 16x16x1 takes some 10,900 instructions, and took 14,000 before the last change. The PEs
take 3,700, the scalers 1,800, job table and decoder 1,000.
"""


def measure(config: Config) -> tuple[int, float]:
    """(cycles, seconds of processor time) of the product."""
    build.model(config, trace=False, say=print)
    rng = np.random.default_rng(1)
    m, k, n = SHAPE
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with Accelerator(SimTransport(config), config) as accelerator:
        result, record = accelerator.matmul(a, b, record=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if not np.array_equal(result, matmul(a, b)):
        raise SystemExit(f"{config.name} gives a result that differs from golden")
    return record.cycles, after - before


def main() -> int:
    lines, slow = [HEAD], False
    m, k, n = SHAPE
    for config in CONFIGS:
        cycles, seconds = min(measure(config) for _ in range(RUNS))
        speed = cycles / seconds
        slow |= config == LARGEST and speed < MINIMUM
        lines.append(
            f"| {config.name} | {cycles:,} | {seconds:.2f} s | {speed:,.0f}"
            f" | {m * k * n / seconds / 1e6:,.0f} M |\n"
        )
        print(lines[-1], end="", flush=True)
    lines.append(TAIL)
    PATH.write_text("".join(lines), encoding="utf-8")
    print(PATH)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
