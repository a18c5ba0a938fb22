"""A core without loads: the host writes weights, parameters and the ADD table."""

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import RESIDENT
from network_duel import NetworkDuel
from products import integers

import weft
from weft.host.emulated import ListTransport
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    unpack_list,
)


@pytest.mark.slow
def test_networks():
    """Dense, depthwise and pooled layers, a table, two lists: all bytes and all cycles."""
    rng = np.random.default_rng(1)
    builder = NetworkBuilder(rng, (1, 4, 4, 3))
    x = builder.convolution(0, 8)
    x = builder.convolution(builder.softmax(x), 8)
    builder.dense(builder.table(x), 6)
    graph = builder.graph()
    program = compile_network_core(graph, target_of(RESIDENT))
    entries = [entry for segment in program.segments for entry in unpack_list(segment.run)]
    assert not any(isinstance(entry, ListLoad) for entry in entries)
    assert len(program.segments) == 2
    x = integers(rng, np.int8, 2, 4, 4, 3)
    duel = NetworkDuel(RESIDENT)
    with program.open(duel) as session:
        y = session(x)
        assert session.cycles == program.cycles
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))
