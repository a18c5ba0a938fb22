"""The host writes the next input, and reads the results before, while a list computes."""

from dataclasses import replace

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder, random_network
from network_cores import LARGE, ODD, SMALL, network_core_config
from network_duel import NetworkDuel
from products import integers

from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.second_place import SecondPlace
from weft.models.network_core.session import GoldenRunner
from weft.models.target import target_of

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

    def run(self, list_address, log_address, *, timeout, beside=None):
        self.lists.append((list_address, beside is not None))
        return super().run(list_address, log_address, timeout=timeout, beside=beside)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("seed", range(8))
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


def test_both_lists_take_the_predicted_cycles():
    config = network_core_config(3, 4, 4, 2, words=1024, b_words=64, lines=24, read_vectors=2)
    program = compile_network_core(small(), target_of(config))
    runner = NetworkDuel(config)
    with program.open(runner) as session:
        session(inputs(4))
    assert runner.cycles[-4:] == [program.cycles] * 4


def test_a_program_without_space_has_no_second_place():
    config = network_core_config(3, 4, 4, 2, words=512, b_words=64, lines=24, read_vectors=2)
    program = compile_network_core(small(), target_of(config), batch=8)
    assert SecondPlace.of(program, 0) is None
    runner = Recorded(config)
    with program.open(runner) as session:
        y = session(inputs(9))
        np.testing.assert_array_equal(y, np.concatenate([session(one[None]) for one in inputs(9)]))
    assert not any(beside for _, beside in runner.lists)
    larger = compile_network_core(small(), target_of(replace(config, words=1024)), batch=8)
    assert SecondPlace.of(larger, 0)


def test_measured_layers_need_the_log_of_each_list():
    config = CORES[0]
    program = compile_network_core(small(), target_of(config))
    runner = Recorded(config)
    with program.open(runner) as session:
        session(inputs(3), stats=True)
    assert not any(beside for _, beside in runner.lists)
