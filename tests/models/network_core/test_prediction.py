"""The predicted cycles of programs: layers and list, and batches that are not followed to the end.

`tests/sim/test_network_runner.py` compares them with a simulated core.
"""

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import network_core_config

from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.prediction import program_conditions
from weft.models.target import target_of
from weft.network_core.cycles import ProgramTiming, predict_list
from weft.network_core.descriptors import split, unpack_list
from weft.sdram import SDRAM_CHIPS

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


def test_the_conditions_name_the_memory():
    """What the cycles depend on: a memory of constant pace, or an SDRAM with rows and refreshes."""
    config = network_core_config(2, 2, 4, 2, read_vectors=2, program_words=2048)
    base = "and a PROGRAM_BASE that is a multiple of 128 bytes"
    assert program_conditions(config, ProgramTiming(9, 384)) == (
        f"a program memory that answers after 9 cycles with a beat each 1.50 cycles, {base}"
    )
    chip = SDRAM_CHIPS["IS42S16160G-7"]
    assert program_conditions(config, ProgramTiming.of_sdram(chip, 100, config.beat_bytes)) == (
        "an SDRAM that answers after 14 cycles in an open row with a beat each 4 cycles, and has"
        f" its first refresh 780 cycles after START, {base}"
    )
