"""Programs made by hand, for all tests of reports; and one for a network core."""

from types import SimpleNamespace

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import MICRO, network_core_config
from network_programs import OTHER, make_program

from weft.models.network_core.compiler import compile_network_core
from weft.models.target import NetworkTarget


@pytest.fixture(scope="session")
def program():
    return make_program()


@pytest.fixture(scope="session")
def other_program():
    return make_program(OTHER)


@pytest.fixture(scope="session")
def network_core_program():
    """Two lists, whose weights are loaded in each inference: a layer with ADD, a pool, a layer."""
    return _compiled(network_core_config(
        3, 4, 4, 2, words=512, b_words=70, lines=10, read_vectors=2, multiplier="plain"
    ))


@pytest.fixture(scope="session")
def micro_program():
    """The same for a core whose memory has one port."""
    return _compiled(MICRO)


@pytest.fixture
def measured():
    """The records of a session with the cycles of two of the five steps of `program`."""
    return [SimpleNamespace(cycles=cycles) for cycles in (300, None, None, 170, None)]


def _compiled(config):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 8))
    x = builder.softmax(builder.add(builder.convolution(0, 8), 0))
    builder.host(builder.convolution(x, 8), "RESHAPE", "reshape", (1, 288), shape=(1, 288))
    target = NetworkTarget("mine", config, 100, 1_000_000)
    return compile_network_core(builder.graph(), target)
