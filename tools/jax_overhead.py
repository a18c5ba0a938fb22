"""Measures what a step of training costs besides the arithmetic of the core, with `weft.jax`.

    python -m tools.jax_overhead

It runs the steps of ``examples/train_jax.py`` in plain JAX and on a golden core. Exit code 1 if the
overhead is above its limit.
"""

import contextlib
import importlib.util
import sys
import time
from pathlib import Path

import jax
import numpy as np

from tools import results
from weft import Accelerator
from weft.host import GoldenTransport
from weft.host.product_stream import ProductStream
from weft.jax import offload

__all__ = ["main", "measure"]

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "train_jax.py"
RUNS = 40
LIMIT = 3.0
ABOUT = f"""\
A step of the training in `examples/train_jax.py`, compiled by `jax.jit`: the gradients of a
convolution network, and new weights of float32. `plain JAX` computes it in float32. `weft.jax` has
its products on a golden core of 8x8x1 in BF16. The parts of its step:

* `golden core`: all behind the transport: the core's memory, its arithmetic, its results.
* `driver`: operands become the words of the command stream, and words become results; any core
  needs this.
* `weft.jax`: the rest: XLA, the calls from XLA, conversions to bfloat16, windows of convolutions.

Each time is the least of {RUNS} steps, as processor time of all threads: so other work on the
machine matters little. `ratio` is the time of `weft.jax` over plain JAX, and `with driver` is that
of `weft.jax` and the driver. The command fails if the ratio is above {LIMIT:g}."""
HEADS = """\
| batch | plain JAX | step | golden core | driver | weft.jax | ratio | with driver |
|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def example():
    """The module of the example."""
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def timed(spent: dict[str, float], *methods):
    """Add the seconds in methods, each given as (owner, name), to ``spent`` by their names."""
    with contextlib.ExitStack() as undo:
        for owner, name in methods:
            call = getattr(owner, name)

            def run(*arguments, call=call, name=name, **given):
                start = time.thread_time()
                try:
                    return call(*arguments, **given)
                finally:
                    spent[name] = spent.get(name, 0.0) + time.thread_time() - start

            setattr(owner, name, run)
            undo.callback(setattr, owner, name, call)
        yield


def measure(batch: int, runs: int = RUNS) -> dict[str, float]:
    """The least milliseconds of processor time of plain JAX, of a step, and of its parts."""
    module = example()
    transport = GoldenTransport(module.TRAINING)
    step = offload(module.train_step, Accelerator(transport))
    plain = jax.jit(module.train_step)
    images, labels = module.digits()
    arguments = module.start(np.random.default_rng(1)), images[:batch], labels[:batch]
    spent: dict[str, float] = {}
    found: dict[str, list[float]] = {}
    accelerator = step._products.accelerator

    def seconds(function):
        start = time.process_time()
        jax.block_until_ready(function(*arguments))
        return time.process_time() - start

    for run in range(runs + 2):  # the first ones compile
        alone = seconds(plain)
        spent.clear()
        with timed(spent, (transport, "send"), (accelerator, "execute"), (ProductStream, "read")):
            whole = seconds(step)
        core = spent["send"]
        driver = spent["execute"] - core + spent["read"]
        if run >= 2:
            parts = {"plain": alone, "step": whole, "core": core, "driver": driver,
                     "rest": whole - core - driver, "with driver": whole - core}
            for name, value in parts.items():
                found.setdefault(name, []).append(1e3 * value)
    return {name: min(values) for name, values in found.items()}


def main() -> int:
    """Print and record the times; return the exit code."""
    lines, above = [HEADS], False
    for batch in (50, 100, 200):
        ms = measure(batch)
        ratio, with_driver = ms["rest"] / ms["plain"], ms["with driver"] / ms["plain"]
        above |= ratio > LIMIT
        times = (ms[name] for name in ("plain", "step", "core", "driver", "rest"))
        cells = [f"{batch}", *(f"{value:.2f} ms" for value in times), f"{ratio:.2f}",
                 f"{with_driver:.2f}"]
        lines.append(f"| {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    print(results.save(
        "jax-overhead", [results.table("".join(lines))], title="Training in JAX",
        command="make jax-overhead", about=ABOUT, of=["tools.jax_overhead", "weft.jax"],
    ))
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
