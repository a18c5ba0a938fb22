"""Random networks on network cores: results by the formulas, and no conflicts of banks."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_jobs import bank_conflicts
from network_core_networks import NetworkBuilder, random_divided_network, random_network
from network_cores import BATCH1, LARGE, ODD, SMALL, TINY, network_core_config
from network_programs import jobs_of
from products import integers
from tiers import quick

from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.program import NO_MAP_PRODUCT
from weft.models.target import target_of

CHIPS = [
    LARGE, SMALL, ODD, TINY, BATCH1,
    # Buffers that hold a part of the weights and parameters only.
    network_core_config(4, 4, 4, 2, words=8192, b_words=200, lines=40),
    network_core_config(2, 16, 4, 4, words=8192, b_words=150, lines=40, read_vectors=2),
    network_core_config(
        6, 4, 16, 4, words=8192, b_words=150, lines=40, read_vectors=2, multiplier="plain"
    ),
]
PRODUCTS = [dataclasses.replace(config, multiply_maps=True) for config in (LARGE, ODD, TINY)]


def check(seed, network=random_network):
    """Run a random network on one of the cores, and return the lists of its program."""
    rng, config = np.random.default_rng(seed), CHIPS[seed % len(CHIPS)]
    dtype = np.uint8 if seed % 3 == 2 else np.int8
    graph = network(rng, dtype)
    try:
        return len(equal(graph, integers(rng, dtype, *graph.tensors[0].shape), config).segments)
    except ModelError as error:
        assert "words of B, and the buffer" in str(error)
        return 0


def equal(graph, x, config):
    """Compare a network with the formulas, with maps that share memory and with all maps kept.

    Return the program that keeps all maps.
    """
    expected = run_graph(graph, [x])
    for activations in (False, True):
        program = compile_network_core(graph, target_of(config), activations=activations)
        assert not any(bank_conflicts(config, job) for job in jobs_of(program))
        for eager in (True, False):
            with program.open(GoldenRunner(config, eager=eager)) as session:
                y, found = session(x, activations=True) if activations else (session(x), {})
            for number, value in zip(graph.outputs, y if len(graph.outputs) > 1 else [y],
                                     strict=True):
                np.testing.assert_array_equal(value, expected[number])
            for name, value in found.items():
                number, = graph.nodes[int(name.removeprefix("out"))].outputs
                np.testing.assert_array_equal(value, expected[number], name)
    return program


@pytest.mark.parametrize("seed", quick(5, [*range(16)]))
def test_random_networks(seed):
    check(seed)


@pytest.mark.parametrize("config", quick(1, PRODUCTS), ids=lambda config: config.array.name)
def test_random_networks_with_products_of_maps(config):
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        dtype = np.uint8 if seed % 3 == 2 else np.int8
        graph = random_network(rng, dtype, multiplies=True)
        program = equal(graph, integers(rng, dtype, *graph.tensors[0].shape), config)
        assert NO_MAP_PRODUCT not in [step.placement.reason for step in program.host]
        found += [(job.add, job.multiply) for job in jobs_of(program)]
    assert {*found} == {(0, 0), (1, 0), (1, 1)}


# A tile of most layers exceeds B, or the parameters of a tile are all that their buffer holds.
TINY_BUFFERS = [
    network_core_config(4, 4, 4, 2, words=16384, b_words=11, lines=8, multiplier="fip"),
    network_core_config(3, 8, 4, 4, words=16384, b_words=6, lines=4, read_vectors=2),
    network_core_config(1, 4, 4, 1, words=32768, b_words=9, lines=5, read_vectors=1),
]


@pytest.mark.parametrize("seed", quick(2, [*range(6)]))
def test_random_networks_in_parts(seed):
    """No layer is for the host."""
    rng, config = np.random.default_rng(seed + 100), TINY_BUFFERS[seed % 3]
    graph = random_network(rng, np.int8)
    program = equal(graph, integers(rng, np.int8, *graph.tensors[0].shape), config)
    assert any(job.partial for job in jobs_of(program))
    assert not program.products


# A diagonal word has the weights of four vectors: more than a pixel of few channels has.
EARLY_WIDE = network_core_config(2, 16, 4, 4, words=16384, read_vectors=2, early=True)


@pytest.mark.parametrize("seed", [8, 17])
def test_jobs_that_start_early_wait_for_all_that_they_read(seed):
    rng = np.random.default_rng(seed)
    graph = random_network(rng, np.int8)
    equal(graph, integers(rng, np.int8, *graph.tensors[0].shape), EARLY_WIDE)


@pytest.mark.parametrize("config", quick(4, CHIPS), ids=lambda config: config.array.name)
@pytest.mark.parametrize("channels", [96, 100])
def test_pools_of_whole_maps(channels, config):
    """The rows of the array compute groups of channels, if all groups have the same size."""
    rng = np.random.default_rng(1)
    builder = NetworkBuilder(rng, (1, 5, 5, 3))
    pools = [builder.pool(builder.convolution(0, channels), 5, 1) for _ in range(2)]
    builder.add(*pools)
    program = equal(builder.graph(), integers(rng, np.int8, 1, 5, 5, 3), config)
    group = max(config.array.cols, config.array.depth)
    groups = channels // group if channels % group == 0 else 1
    jobs = [job for job in jobs_of(program) if (job.kernel_height, job.kernel_width) == (5, 5)]
    assert {job.out_width for job in jobs} == {groups}
    assert sum(job.columns for job in jobs) * groups == 2 * channels


@pytest.mark.slow
def test_random_networks_of_several_lists():
    found = [check(seed, random_divided_network) for seed in range(12)]
    assert max(found) > 2 and found.count(1) < len(found) // 2


@pytest.mark.long
@pytest.mark.parametrize("first", [
    pytest.param(12, marks=pytest.mark.slow), pytest.param(44, marks=pytest.mark.long),
])
def test_more_random_networks_of_several_lists(first):
    for seed in range(first, first + 32):
        check(seed, random_divided_network)


@pytest.mark.parametrize("first", [
    pytest.param(first, marks=pytest.mark.slow if first < 48 else pytest.mark.long)
    for first in range(16, 176, 32)
])
def test_more_random_networks(first):
    for seed in range(first, first + 32):
        check(seed)
