"""Measures what a step of training costs besides the arithmetic of the core, with `weft.jax`.

    python -m tools.jax_overhead

It runs the steps of ``examples/train_jax.py`` in plain JAX, and with a core that answers at once.
Exit code 1 if the overhead is above its limit.
"""

import contextlib
import importlib.util
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from tools import results
from weft import Accelerator, Config
from weft.commands import Job
from weft.host import GoldenTransport
from weft.host.product_stream import ProductStream
from weft.host.transport import Packet
from weft.jax import offload

__all__ = ["main", "measure"]

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "train_jax.py"
RUNS = 400
LIMIT = 3.0
ABOUT = f"""\
A step of the training in `examples/train_jax.py`, compiled by `jax.jit`: the gradients of a
convolution network, and new weights of float32. `plain JAX` computes it in float32. `Weft` has its
products on a core of 8x8x1 in BF16. This core does not compute: it repeats the results of a golden
core from a step before, which has the same operands, and its own time is subtracted. So `Weft` is
all that a step costs beside the core:

* `driver`: operands become the words of the command stream, and words become results; any core
  needs this.
* `weft.jax`: the rest: XLA, the calls from XLA, conversions to bfloat16, windows of convolutions.

Each time is the least of {RUNS} steps, as processor time of all threads: so other work on the
machine matters little. `ratio` is the time of `Weft` over plain JAX. The command fails if it is
above {LIMIT:g}."""
HEADS = """\
| batch | plain JAX | Weft | driver | weft.jax | ratio |
|---:|---:|---:|---:|---:|---:|
"""


class _Repeating(GoldenTransport):
    """A golden core that computes one round of commands, and then repeats its results."""

    def __init__(self, config: Config):
        super().__init__(config)
        self._round: list[list[tuple[int, Packet]]] = []  # of each call of `send`
        self._place: int | None = None  # None: in the first round

    def repeat(self):
        """The first round has ended."""
        self._place = 0

    def send(self, commands):
        first = next(header.tag for header, _ in commands if isinstance(header, Job))
        if self._place is None:
            super().send(commands)
            self._round.append([((p.tag - first) % (1 << 16), p) for p in self._packets])
            return
        packets = self._round[self._place]
        self._place = (self._place + 1) % len(self._round)
        self._packets = deque(
            replace(packet, tag=(first + place) % (1 << 16)) for place, packet in packets
        )


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
    """The least milliseconds of processor time of plain JAX, of Weft, and of its parts."""
    module = example()
    transport = _Repeating(module.TRAINING)
    accelerator = Accelerator(transport)
    step, plain = offload(module.train_step, accelerator), jax.jit(module.train_step)
    images, labels = module.digits()
    arguments = module.start(np.random.default_rng(1)), images[:batch], labels[:batch]
    spent: dict[str, float] = {}
    found: dict[str, list[float]] = {}

    def seconds(function):
        start = time.process_time()
        jax.block_until_ready(function(*arguments))
        return time.process_time() - start

    seconds(step)
    transport.repeat()
    for run in range(runs + 2):  # the first ones compile
        alone = seconds(plain)
        spent.clear()
        methods = (transport, "send"), (transport, "receive"), (accelerator, "execute")
        with timed(spent, *methods, (ProductStream, "read")):
            whole = seconds(step)
        core = spent["send"] + spent["receive"]
        driver = spent["execute"] - core + spent["read"]
        if run >= 2:
            parts = {"plain": alone, "weft": whole - core, "driver": driver,
                     "rest": whole - core - driver}
            for name, value in parts.items():
                found.setdefault(name, []).append(1e3 * value)
    return {name: min(values) for name, values in found.items()}


def main() -> int:
    """Print and record the times; return the exit code."""
    lines, above = [HEADS], False
    for batch in (50, 100, 200):
        ms = measure(batch)
        ratio = ms["weft"] / ms["plain"]
        above |= ratio > LIMIT
        times = (ms[name] for name in ("plain", "weft", "driver", "rest"))
        cells = [f"{batch}", *(f"{value:.2f} ms" for value in times), f"{ratio:.2f}"]
        lines.append(f"| {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    print(results.save(
        "jax-overhead", [results.table("".join(lines))], title="Training in JAX",
        command="make jax-overhead", about=ABOUT, of=["tools.jax_overhead", "weft.jax"],
    ))
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
