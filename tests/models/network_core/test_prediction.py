"""The predicted cycles of programs: layers and list, and batches that are not followed to the end.

`tests/sim/test_network_runner.py` compares them with a simulated core.
"""

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import network_core_config

from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import split, unpack_list

CHIP = network_core_config(3, 4, 4, 2, words=1024, b_words=64, lines=24, read_vectors=2)


@pytest.fixture(scope="module")
def programs():
    """Programs of a network by their batch."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))
    builder.dense(builder.pool(builder.convolution(0, 8), 2, 2), 10)
    graph = builder.graph()
    return [compile_network_core(graph, target_of(CHIP), batch=batch) for batch in range(1, 7)]


def test_layers_make_up_the_list(programs):
    """The list ends some cycles after its last store."""
    program = programs[0]
    total = sum(step.cycles for step in program.layers)
    assert total < program.cycles < total + 40


def test_a_large_batch_takes_the_mean_time_of_inferences_after_the_first(programs):
    """Banks differ from inference to inference, and so do waits of reads for writes."""
    for program in programs:
        [run] = program.segments
        first, log = (split(number, CHIP.banks) for number in (run.run_first, program.log))
        exact = predict_list(CHIP, unpack_list(run.run), first, log).cycles
        if program.batch <= 3:
            assert program.cycles == exact
        else:
            assert program.cycles == pytest.approx(exact, rel=0.01)
