"""Accelerators and functions for the tests of `weft.jax`."""

import jax
import numpy as np
import pytest

from weft import Accelerator, Config
from weft.host import GoldenTransport

# Functions here run once: to compile them well takes longer than to run them.
jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def bf16():
    return Accelerator(GoldenTransport(Config(dtype="bf16", rows=4, cols=4, lanes=1)))


@pytest.fixture
def int8():
    return Accelerator(GoldenTransport(Config(rows=4, cols=4, depth=2, lanes=1)))


@pytest.fixture
def rng():
    return np.random.default_rng(54)
