"""Measures the speed of the simulated accelerator.

    python -m tools.sim_speed

Exit code 1 if the largest array is slower than its minimum.
"""

import resource
import sys

import numpy as np

from tools import results
from weft import Accelerator
from weft.config import Config
from weft.golden.matmul import matmul
from weft.sim import build
from weft.sim.transport import SimTransport

LARGEST, MINIMUM = Config(rows=16, cols=16), 700_000
CONFIGS = [Config(rows=4, cols=4, depth=4), Config(rows=8, cols=8), LARGEST]
SHAPE = 1024, 512, 512
RUNS = 5
ABOUT = f"""\
Speed of the Verilated accelerator behind `SimTransport` on one processor core, for a product of
{" x ".join(map(str, SHAPE))}, with the loading of its operands. It is the best of {RUNS} runs:
other work on the machine makes a run up to a third slower. The processor time includes only the
process of the model, with its start and end; the driver runs in another process. The
command fails if 16x16x1 is below {MINIMUM:,} cycles/s."""
HEADS = """\
| design | cycles | processor time | cycles/s | MAC/s |
|---|---:|---:|---:|---:|
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
    lines, slow = [HEADS], False
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
    print(results.save(
        "simulation", [results.table("".join(lines))], title="Speed of the simulation",
        command="make sim-speed", about=ABOUT, of=["tools.sim_speed", "weft.host.accelerator"],
    ))
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
