"""A core without loads: what the host writes, and what does not fit such a core."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import RESIDENT, network_core_config
from products import integers
from rejects import rejects

from weft.golden.network_core import NetworkCoreBuffers
from weft.golden.network_core.memory import MemoryArea
from weft.models.errors import UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.resident import resident_writes
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.network_core.descriptors import ListLoad, LoadTarget, unpack_list

NARROW = network_core_config(1, 2, 8, 1, read_vectors=1, b_words=600, resident=True)
WIDE = network_core_config(1, 8, 2, 2, read_vectors=1, b_words=600, resident=True)


def network(rng, columns=8):
    """Dense, depthwise and pooled layers, and one with a table."""
    builder = NetworkBuilder(rng, (1, 4, 4, 3))
    x = builder.pool(builder.convolution(builder.convolution(0, columns), 1, groups=columns), 3, 1)
    builder.dense(builder.table(builder.convolution(x, 8)), 6)
    return builder.graph()


@pytest.mark.parametrize("config", [RESIDENT, NARROW, WIDE], ids=lambda c: c.array.name)
def test_the_host_writes_what_loads_would(config):
    """The golden model executes the loads of the setup part on a core with as many words."""
    graph = network(np.random.default_rng(1))
    program = compile_network_core(graph, target_of(config))
    [part] = program.setup
    loads = [entry for entry in unpack_list(part) if isinstance(entry, ListLoad)]
    assert {load.target for load in loads} == set(LoadTarget)
    assert any(load.diagonal for load in loads)
    assert any(load.fill for load in loads) == (config is not NARROW)
    assert program.areas["setup"] == 0
    expected, found = NetworkCoreBuffers(config), NetworkCoreBuffers(config)
    size = 1 << 16
    area = MemoryArea(
        dataclasses.replace(config, words=size), part.ljust(size * config.array.depth, b"\0"),
        0, size,
    )
    for load in loads:
        expected.load(area, load)
    for first, data in resident_writes(config, part):
        found.write(first, data)
    for name in ("b", "lines", "table"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    x = integers(np.random.default_rng(2), np.int8, 2, 4, 4, 3)
    with program.open(GoldenRunner(config)) as session:
        y = session(x)
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


def dense(*columns, tables=()):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    x = 0
    for n, each in enumerate(columns):
        x = builder.dense(x, each)
        if n in tables:
            x = builder.table(x)
    return builder.graph()


def two_sums():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    x = builder.add(builder.dense(0, 8), 0)
    builder.add(builder.dense(x, 8), x)
    return builder.graph()


@pytest.mark.parametrize("graph, text", [
    (two_sums(), (
        "net: its layers need 2 ADD tables, and a core with resident has no loads, and one:"
        " [network_core] resident must be false"
    )),
    (dense(256, 40), (
        "net: its layers need 384 words of B, and a core with resident has no loads, and 256:"
        " [network_core] b_words must be at least 384"
    )),
    (dense(160), (
        "net: its layers need 80 parameter lines, and a core with resident has no loads, and 64:"
        " [network_core] lines must be at least 80"
    )),
], ids=["tables", "words", "lines"])
def test_what_does_not_fit_is_refused(graph, text):
    with rejects(UnfitError, text):
        compile_network_core(graph, target_of(RESIDENT))


def test_the_host_computes_a_second_table():
    """Of two tables the core could have one, and it has neither."""
    one, two = (
        compile_network_core(dense(8, 8, tables=tables), target_of(RESIDENT))
        for tables in ((0,), (0, 1))
    )
    assert not one.host and len(two.host) == 2


def test_the_host_computes_products_of_its_own():
    """Between two lists: the words of B are those of the layers."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    x = builder.dense(0, 8)
    builder.on_host()
    builder.dense(builder.dense(x, 8), 8)
    program = compile_network_core(builder.graph(), target_of(RESIDENT))
    assert len(program.host) == 1 and not program.products
