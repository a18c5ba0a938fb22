"""Host time of products on golden cores: what a call costs besides golden's own arithmetic.

``python tools/driver_time.py [--size N] [--calls N]`` prints, for a product core and for a network
core, the medians of a call of `Accelerator.matmul`, of golden's arithmetic in it, of the other work
of the golden core (its memory and layouts), and of the rest, which is the driver's.
"""

import argparse
import statistics
import sys
import time

import numpy as np

from weft import Accelerator, Config
from weft.design import Design, PerKind
from weft.host import GoldenTransport
from weft.host.emulated import ListTransport
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of

__all__ = ["main", "measure"]


def measure(size: int, calls: int, design: Design) -> list[float]:
    """Return the medians, in ms: of a call, golden's arithmetic, its memory, and the rest."""
    spent = {}
    transport = _GOLDEN.of(design)(design, spent)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (size, size), np.int8) for _ in range(2))
    rows = []
    with Accelerator(transport) as accelerator:
        for _ in range(10 + calls):
            spent |= {"all": 0.0, "arithmetic": 0.0}
            start = time.perf_counter()
            accelerator.matmul(a, b)
            whole = time.perf_counter() - start
            arithmetic, model = spent["arithmetic"], spent["all"]
            rows.append((whole, arithmetic, model - arithmetic, whole - model))
    return [1e3 * statistics.median(part) for part in zip(*rows[10:], strict=True)]


def _product_core(config, spent):
    transport = GoldenTransport(config)
    _time(transport._core, spent, sums="arithmetic", load="all", run="all")
    return transport


def _network_core(config, spent):
    runner = GoldenRunner(config)
    _time(runner, spent, write="all", read="all", write_program="all")
    _time(runner, spent, run="arithmetic")
    _time(runner, spent, run="all")
    return ListTransport(runner)


def _time(owner, spent, **methods):
    """Add the time of each method to ``spent``, under the name that it is given."""
    for method, name in methods.items():
        setattr(owner, method, _timed(getattr(owner, method), spent, name))


def _timed(call, spent, name):
    def run(*arguments, **given):
        start = time.perf_counter()
        try:
            return call(*arguments, **given)
        finally:
            spent[name] += time.perf_counter() - start

    return run


_GOLDEN = PerKind(product=_product_core, network=_network_core)


def main(arguments=None) -> int:
    """Print the medians; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="M = K = N (default: 64)")
    parser.add_argument("--calls", type=int, default=1000, help="number of calls (default: 1000)")
    args = parser.parse_args(arguments)
    for name in ("size", "calls"):
        if getattr(args, name) < 1:
            parser.error(f"{name} must be 1 or more, not {getattr(args, name)}")
    for design in (Config(), target_of("ulx3s-85f", "networks").config):
        whole, golden, model, rest = measure(args.size, args.calls, design)
        print(
            f"{design.kind}: matmul of {args.size}x{args.size}x{args.size}: {whole:.3f} ms a call,"
            f" golden's arithmetic {golden:.3f} ms, its memory {model:.3f} ms,"
            f" the driver {rest:.3f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
