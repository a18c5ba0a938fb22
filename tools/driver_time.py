"""Host time of products on the golden core: what a call costs besides golden's own arithmetic.

``python tools/driver_time.py [--size N] [--calls N]`` prints the medians of a call of
`Accelerator.matmul`, of golden's arithmetic in it, of the other work of the golden core (its
buffers and layouts), and of the rest, which is the driver's.
"""

import argparse
import statistics
import sys
import time

import numpy as np

from weft import Accelerator, Config
from weft.host import GoldenTransport

__all__ = ["main", "measure"]


def measure(size: int, calls: int, config: Config | None = None) -> list[float]:
    """Return the medians, in ms: of a call, golden's arithmetic, its buffers, and the rest."""
    config = config or Config()
    transport = GoldenTransport(config)
    core, spent = transport._core, {}

    def timed(name):
        call = getattr(core, name)

        def run(*arguments):
            start = time.perf_counter()
            try:
                return call(*arguments)
            finally:
                spent[name] += time.perf_counter() - start

        setattr(core, name, run)

    for name in ("sums", "load", "run"):
        timed(name)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (size, size), np.int8) for _ in range(2))
    rows = []
    with Accelerator(transport) as accelerator:
        for _ in range(10 + calls):
            spent |= dict.fromkeys(("sums", "load", "run"), 0.0)
            start = time.perf_counter()
            accelerator.matmul(a, b)
            whole = time.perf_counter() - start
            model = spent["load"] + spent["run"]
            rows.append((whole, spent["sums"], model - spent["sums"], whole - model))
    return [1e3 * statistics.median(part) for part in zip(*rows[10:], strict=True)]


def main(arguments=None) -> int:
    """Print the medians; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="M = K = N (default: 64)")
    parser.add_argument("--calls", type=int, default=1000, help="number of calls (default: 1000)")
    args = parser.parse_args(arguments)
    for name in ("size", "calls"):
        if getattr(args, name) < 1:
            parser.error(f"{name} must be 1 or more, not {getattr(args, name)}")
    whole, golden, model, rest = measure(args.size, args.calls)
    print(
        f"matmul of {args.size}x{args.size}x{args.size}: {whole:.3f} ms a call,"
        f" golden's arithmetic {golden:.3f} ms, its buffers {model:.3f} ms,"
        f" the driver {rest:.3f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
