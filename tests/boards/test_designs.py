"""Cores for networks of boards: what they are made for fits them."""

import numpy as np
import pytest
from digits import CNN
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from tiers import quick

import weft
from weft.boards.bitstream import prepare
from weft.boards.catalog import BOARDS
from weft.boards.designs import BATCH1_85F
from weft.models.errors import UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of


def equal(graph, program):
    """The golden core gives the results of the formulas."""
    x = np.random.default_rng(2).integers(-128, 128, graph.tensors[0].shape).astype(np.int8)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), run_graph(graph, [x])[graph.outputs[0]])


def test_weights_of_an_autoencoder_stay_in_b():
    """The layers of ad01 of MLPerf Tiny: 524 words of B, and at most 10.5 us."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 640))
    x = 0
    for columns in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        x = builder.dense(x, columns)
    graph = builder.graph()
    program = compile_network_core(graph, target_of("ulx3s-85f", "batch1"))
    assert sum(step.words for step in program.layers) == 524
    assert (program.areas["weights"], program.areas["parameters"]) == (0, 0)
    assert program.cycles / BATCH1_85F.clock < 10.5
    equal(graph, program)


def test_an_hx8k_holds_a_small_network():
    target = target_of("ice40-hx8k-evn", "networks")
    builder = NetworkBuilder(np.random.default_rng(3), (1, 64))
    builder.dense(builder.dense(builder.dense(0, 24), 16), 10)
    graph = builder.graph()
    equal(graph, compile_network_core(graph, target))
    with pytest.raises(UnfitError, match="the memory must have 4,520 bytes .* has 4,096"):
        weft.load(CNN).compile(target)


@pytest.mark.parametrize("name, blocks", quick(1, [("icebreaker", 8), ("ice40-hx8k-evn", 0)]))
def test_an_ice40_multiplies_in_the_blocks_that_it_has(name, blocks):
    board = BOARDS[name].built_for("networks")
    assert prepare(board, board.config).rtlil.count("cell \\SB_MAC16 ") == blocks
