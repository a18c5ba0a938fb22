"""Accelerators for the tests of `weft.torch`, which are skipped without PyTorch."""

import sys

import numpy as np
import pytest

from weft import Accelerator, Config
from weft.host import GoldenTransport


@pytest.fixture
def bf16():
    return Accelerator(GoldenTransport(Config(dtype="bf16", rows=4, cols=4, lanes=1)))


@pytest.fixture
def int8():
    return Accelerator(GoldenTransport(Config(rows=4, cols=4, depth=2, lanes=1)))


@pytest.fixture
def rng():
    return np.random.default_rng(54)


@pytest.fixture(autouse=True)
def fresh():
    """Graphs and graph breaks of other tests are forgotten."""
    if torch := sys.modules.get("torch"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
