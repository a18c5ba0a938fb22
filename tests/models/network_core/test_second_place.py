"""The host writes the next input, and reads the results before, while a list computes."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder, random_network
from network_cores import LARGE, ODD, PROGRAM, SIMULATED, SMALL, network_core_config
from products import integers
from tiers import quick

from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.network_core.second_place import second_place
from weft.models.target import target_of
from weft.network_core.descriptors import join
from weft.sim.network_core import SimulatedRunner

CORES = [
    LARGE, ODD, SMALL,
    network_core_config(
        4, 4, 4, 4, words=4096, b_words=200, lines=64, read_vectors=4, program_words=1 << 14
    ),
]
COUNT = 5


class Recorded(GoldenRunner):
    """Notes the place of each list, and whether the host works beside it."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.lists = []

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()):
        self.lists.append((list_address, beside is not None))
        return super().run(list_address, log_address, timeout=timeout, beside=beside, writes=writes)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("seed", quick(4, [*range(8)]))
def test_results_are_the_same(seed, batch):
    rng, config = np.random.default_rng(seed), CORES[seed % 4]
    graph = random_network(rng, np.uint8 if seed % 3 == 2 else np.int8)
    x = integers(rng, graph.tensors[0].dtype, COUNT, *graph.tensors[0].shape[1:])
    program = compile_network_core(graph, target_of(config), batch=batch)
    expected = [run_graph(graph, [one[None]])[graph.outputs[0]] for one in x]
    for eager in (True, False):
        runner = Recorded(config, eager=eager)
        with program.open(runner) as session:
            session(x[:1])
            del runner.lists[:]
            y = session(x)
            first = y[0] if len(graph.outputs) > 1 else y
            np.testing.assert_array_equal(first, np.concatenate(expected))
        places = [place for place, beside in runner.lists if beside]
        assert len(places) == -(-COUNT // batch) and len({*places}) == 2


def small():
    b = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))
    b.dense(b.convolution(b.convolution(0, 8), 8, stride=(2, 2)), 6)
    return b.graph()


def inputs(count):
    return integers(np.random.default_rng(2), np.int8, count, 6, 6, 3)


@pytest.mark.parametrize("config", [SIMULATED, PROGRAM], ids=["maps", "program-memory"])
def test_both_lists_and_all_layers_take_the_predicted_cycles(config):
    program = compile_network_core(small(), target_of(config))
    simulated = SimulatedRunner(config)
    with program.open(GoldenRunner(config)) as session:
        expected = session(inputs(4))
    seen, cycles = [], []
    with program.open(simulated) as session:
        y, records = session(inputs(4), stats=True, watch=seen.append)
        for _ in range(2):
            session(inputs(2))
            cycles.append(session.cycles)
    np.testing.assert_array_equal(y, expected)
    assert cycles == [program.cycles] * 2
    assert records == seen and [record.step for record in records] == list(program.steps)
    # The record has the first inference; the second place has a log of its own.
    assert [record.cycles for record in records] == [step.cycles for step in program.layers]


class Logged(Recorded):
    """Writes a log: each list takes longer than the one before."""

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()):
        time = 1000 * (1 + len(self.lists))
        first = join(log_address, self.config.banks) * self.config.array.depth
        for entry in range(3):
            data = struct.pack("<2I", 0, time * (1 + entry))
            self.memory[first + 8 * entry : first + 8 * entry + 8] = np.frombuffer(data, np.uint8)
        report = super().run(
            list_address, log_address, timeout=timeout, beside=beside, writes=writes
        )
        return replace(report, cycles=time)


def test_each_place_has_a_log_of_its_own():
    config = network_core_config(3, 4, 4, 2, words=1024, b_words=512, lines=24, read_vectors=2)
    program = compile_network_core(small(), target_of(config))
    assert [step.jobs for step in program.layers] == [1, 1, 1]
    runner = Logged(config)
    with program.open(runner) as session:
        session(inputs(1))
        lists = len(runner.lists)
        _, records = session(inputs(3), stats=True)
    assert [record.cycles for record in records] == [1000 * (lists + 1)] * 3


def test_records_of_operators_before_a_list_are_in_order():
    b = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))
    b.host(0, "NEG", "tflite.neg", (1, 6, 6, 3))
    b.convolution(1, 8)
    program = compile_network_core(b.graph(), target_of(CORES[0]))
    runner = Recorded(CORES[0])
    with program.open(runner) as session:
        _, records = session(inputs(3), stats=True)
    assert [record.step for record in records] == list(program.steps)
    assert [beside for _, beside in runner.lists[-3:]] == [True] * 3


def test_a_program_without_space_has_no_second_place():
    config = network_core_config(3, 4, 4, 2, words=512, b_words=64, lines=24, read_vectors=2)
    program = compile_network_core(small(), target_of(config), batch=8)
    assert second_place(program, 0) is None
    runner = Recorded(config)
    with program.open(runner) as session:
        y = session(inputs(9))
        np.testing.assert_array_equal(y, np.concatenate([session(one[None]) for one in inputs(9)]))
    assert not any(beside for _, beside in runner.lists)
    larger = compile_network_core(small(), target_of(replace(config, words=1024)), batch=8)
    assert second_place(larger, 0)
