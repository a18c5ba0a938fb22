"""Fixtures of the tests of `weft.torch`, which are skipped without PyTorch."""

import sys

import pytest
from offload_cores import bf16, int8, rng

__all__ = ["bf16", "fresh", "int8", "rng"]


@pytest.fixture(autouse=True)
def fresh():
    """Graphs and graph breaks of other tests are forgotten."""
    if torch := sys.modules.get("torch"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
