"""Cores for networks of boards: what they are made for fits them."""

import numpy as np
from chip_networks import NetworkBuilder
from graph_runner import run_graph

from weft.boards.network_designs import BATCH1_85F
from weft.network.chip.compiler import compile_chip
from weft.network.target import target_of


def test_weights_of_an_autoencoder_stay_in_b():
    """The layers of ad01 of MLPerf Tiny: 1,040 words of B, and at most 15 us."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 640))
    x = 0
    for columns in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        x = builder.dense(x, columns)
    graph = builder.graph()
    program = compile_chip(graph, target_of("ulx3s-85f", "batch1"))
    assert sum(step.words for step in program.layers) == 1040
    assert (program.areas["weights"], program.areas["parameters"]) == (0, 0)
    assert program.cycles / BATCH1_85F.clock < 15
    x = builder.rng.integers(-128, 128, (1, 640)).astype(np.int8)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), run_graph(graph, [x])[graph.outputs[0]])
