"""A core without loads: the host writes weights, parameters and the ADD table."""

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import RESIDENT
from network_duel import NetworkDuel
from products import integers

import weft
from weft.golden.network_core import run_list
from weft.host.emulated import ListTransport
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    split,
    unpack_list,
)
from weft.sim.network_core import NetworkSimulation

pytestmark = pytest.mark.slow
DEPTH = RESIDENT.array.depth


def network(batch=1):
    """Dense, depthwise and pooled layers, one with a table, and two lists."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 4, 4, 3))
    x = builder.pool(builder.convolution(builder.convolution(0, 12), 1, groups=12), 3, 1)
    x = builder.convolution(builder.softmax(x), 8)
    builder.dense(builder.table(x), 6)
    graph = builder.graph()
    return graph, compile_network_core(graph, target_of(RESIDENT), batch=batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_networks(batch):
    """All bytes, and the cycles of each list; a list of several inferences has a loop."""
    graph, program = network(batch)
    entries = [entry for segment in program.segments for entry in unpack_list(segment.run)]
    assert len(program.segments) == 2
    assert not any(isinstance(entry, ListLoad) for entry in entries)
    assert any(isinstance(entry, ListLoop) for entry in entries) == (batch > 1)
    x = integers(np.random.default_rng(2), np.int8, 2 * batch, 4, 4, 3)
    with program.open(NetworkDuel(RESIDENT)) as session:
        y = session(x)
        assert session.cycles == program.cycles
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


def test_products_between_networks():
    """The host writes the words of B of a product, and those of the network again."""
    graph, program = network()
    rng, duel = np.random.default_rng(3), NetworkDuel(RESIDENT)
    products = weft.Accelerator(ListTransport(duel))
    x = integers(rng, np.int8, 2, 4, 4, 3)
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    session = program.open(duel)
    for row, y in zip(x, wanted, strict=True):
        np.testing.assert_array_equal(session(row[None]), y)
        a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((5, 90), (90, 21)))
        np.testing.assert_array_equal(products.matmul(a, b), a.astype(int) @ b.astype(int))
        found, golden = (
            each.matmul(a, b, scale=0.003)
            for each in (products, weft.Accelerator(ListTransport(GoldenRunner(RESIDENT))))
        )
        np.testing.assert_array_equal(found, golden)
    session.close()


_JOB = ListJob(
    panel_rows=1, out_height=1, out_width=1, columns=2, tile_words=1, kernel_height=1,
    kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1, sums=1,
    input=split(1000, 1), output=split(1010, 1),
)


@pytest.mark.parametrize("entries, error, jobs", [
    ([_JOB, ListEnd()], ListError.NONE, 1),
    ([_JOB, ListLoad(words=1), ListEnd()], ListError.OPCODE, 1),
    ([_JOB, ListJob(**vars(_JOB) | {"loads": 1}), ListEnd()], ListError.DEADLOCK, 1),
    ([ListJob(**vars(_JOB) | {"input": split(RESIDENT.region, 1)}), ListEnd()],
     ListError.ADDRESS, 0),
], ids=["right", "load", "waits", "weights as a map"])
def test_lists(entries, error, jobs):
    """A list with a load, or a job that waits for one, ends with an error."""
    data = b"".join(entry.pack() for entry in entries)
    memory = np.random.default_rng(4).integers(0, 256, RESIDENT.memory_bytes, np.uint8)
    memory[: len(data)] = np.frombuffer(data, np.uint8)
    log = 900
    expected = run_list(RESIDENT, memory.copy(), 0, split(log, 1))
    assert (expected.error, expected.jobs) == (error, jobs)
    with NetworkSimulation(RESIDENT) as core:
        core.write(memory.tobytes())
        for target in range(3):  # words that nothing has written are 0 in the golden model
            first, vectors = RESIDENT.loaded_vector(target, 0), RESIDENT.regions[1 + target]
            core.write(bytes(vectors * DEPTH), first)
        outcome = core.run(0, log)
        assert (outcome.error, outcome.job) == (error, jobs)
        if error == ListError.NONE:
            assert outcome.cycles == predict_list(RESIDENT, entries, 0, split(log, 1)).cycles
