"""Host time of products on the golden core: what a call costs besides golden's own arithmetic.

``python tools/driver_time.py [--size N] [--calls N]`` prints the medians of a call of
`Accelerator.matmul`, of golden's arithmetic in it, and of the rest, which is the driver's time and
that of the core's model: plans, layouts, buffers and queues.
"""

import argparse
import statistics
import sys
import time

import numpy as np

from weft import Accelerator, Config
from weft.host import GoldenTransport

__all__ = ["main", "measure"]


def measure(size: int, calls: int, config: Config | None = None) -> tuple[float, float, float]:
    """Return the medians, in ms, of a call, of golden's arithmetic in it, and of the rest."""
    config = config or Config()
    transport = GoldenTransport(config)
    core, spent = transport._core, [0.0]
    sums = core.sums

    def timed(*arguments):
        start = time.perf_counter()
        try:
            return sums(*arguments)
        finally:
            spent[0] += time.perf_counter() - start

    core.sums = timed
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (size, size), np.int8) for _ in range(2))
    rows = []
    with Accelerator(transport) as accelerator:
        for _ in range(10 + calls):
            spent[0], start = 0.0, time.perf_counter()
            accelerator.matmul(a, b)
            whole = time.perf_counter() - start
            rows.append((whole, spent[0], whole - spent[0]))
    first, second, third = (1e3 * statistics.median(part) for part in zip(*rows[10:], strict=True))
    return first, second, third


def main(arguments=None) -> int:
    """Print the medians; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="M = K = N (default: 64)")
    parser.add_argument("--calls", type=int, default=1000, help="number of calls (default: 1000)")
    args = parser.parse_args(arguments)
    for name in ("size", "calls"):
        if getattr(args, name) < 1:
            parser.error(f"{name} must be 1 or more, not {getattr(args, name)}")
    whole, golden, rest = measure(args.size, args.calls)
    print(
        f"matmul of {args.size}x{args.size}x{args.size}: {whole:.3f} ms a call,"
        f" golden's arithmetic {golden:.3f} ms, the rest {rest:.3f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
