"""Settings and fixtures of the tests of `weft.jax`."""

import jax
from offload_cores import bf16, int8, rng

__all__ = ["bf16", "int8", "rng"]

# Functions here run once: to compile them well takes longer than to run them.
jax.config.update("jax_disable_most_optimizations", True)
