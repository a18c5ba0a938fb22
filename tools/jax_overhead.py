"""Measures what a step of training costs besides the arithmetic of the core, with `weft.jax`.

    python -m tools.jax_overhead

It runs the steps of ``examples/train_jax.py`` in plain JAX, and with a core that answers at once.
Exit code 1 if the overhead is above its limit.
"""

import sys

import jax
import numpy as np

from tools import overhead
from weft import Accelerator
from weft.jax import offload

__all__ = ["main", "measure"]

LIMIT = 3.0
ABOUT = """\
A step of the training in `examples/train_jax.py`, compiled by `jax.jit`: the gradients of a
convolution network, and new weights of float32. `plain JAX` computes it in float32. `Weft` has its
"""


def measure(batch: int, runs: int = overhead.RUNS) -> dict[str, float]:
    """The times of steps with a batch: see `tools.overhead.measured`."""
    module = overhead.example("jax")
    transport = overhead.Repeating(module.TRAINING)
    accelerator = Accelerator(transport)
    images, labels = module.digits()
    arguments = module.start(np.random.default_rng(1)), images[:batch], labels[:batch]

    def run(function):
        return lambda: jax.block_until_ready(function(*arguments))

    step = offload(module.train_step, accelerator)
    return overhead.measured(
        run(jax.jit(module.train_step)), run(step), accelerator, transport, runs
    )


def main() -> int:
    """Print and record the times; return the exit code."""
    return overhead.recorded("jax", "JAX", ABOUT, measure, LIMIT)


if __name__ == "__main__":
    sys.exit(main())
