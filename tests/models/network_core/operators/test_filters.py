"""SVDF with a state of int8 in the memory of a network core: streams against TFLite Micro."""


import numpy as np
import pytest
from network_cores import EARLY, LARGE, MICRO, ODD, ROW, SIMULATED
from products import integers
from streaming_files import svdf_file
from tflite_files import runner
from tiers import quick

import weft
from weft.models.network_core.runners import GoldenRunner
from weft.sim.network_core import SimulatedRunner

CASES = [  # filters, rank, values in time, zero points of the input and of the state
    [10, 2, 5, -11, 100], [8, 1, 4, 127, -128], [7, 1, 1, -128, 127], [27, 3, 2, 0, 0],
    [64, 1, 8, -7, -50], [5, 5, 9, 3, 1], [12, 1, 255, -128, -1],
]


def stream(*case, seed=1, count=24, **options):
    """A file, inputs, and the outputs of TFLite Micro."""
    data = svdf_file(np.random.default_rng(seed), *case, **options)
    x = integers(np.random.default_rng(seed + 1), np.int8, count, 13)
    x[::3] //= 9
    run = runner(data)
    expected = np.concatenate([run(row[None])[0] for row in x])
    assert len(np.unique(expected, axis=0)) > count // 4
    return data, x, expected


def compiled(data, config):
    """A program of one list."""
    program = weft.load(data, "net").compile(config)
    assert len(program.segments) == 1 and not program.host and not program.host_states
    return program


@pytest.mark.parametrize("case", quick(5, CASES))
@pytest.mark.parametrize("config", quick(1, [SIMULATED, LARGE, ODD, MICRO]))
def test_a_filter_is_a_part_of_the_list(case, config):
    """Beside layers, alone, and one after the other; also with new values that wrap."""
    for options in ({}, {"layers": False}, {"count": 2}):
        data, x, expected = stream(*case, **options)
        with compiled(data, config).open("golden") as session:
            np.testing.assert_array_equal(session(x), expected)
            session.reset()
            np.testing.assert_array_equal(session(x[:5]), expected[:5])


def test_new_values_wrap():
    """The weights of the first case allow them, and those of the second one do not."""
    jobs = []
    for size in (127, 2):
        data, x, expected = stream(8, 1, 4, -11, 100, largest=size)
        program = compiled(data, SIMULATED)
        jobs.append(sum(step.jobs for step in program.layers))
        with program.open(GoldenRunner(SIMULATED, eager=False)) as session:
            np.testing.assert_array_equal(session(x), expected)
    assert jobs[0] == jobs[1] + 2


def test_without_a_bias():
    """TFLite Micro does not read such files."""
    case = 6, 2, 3, -11, 5
    _, x, expected = stream(*case, bias=0, layers=False)
    data = svdf_file(np.random.default_rng(1), *case, bias=None, layers=False)
    with compiled(data, SIMULATED).open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


@pytest.mark.parametrize("config", quick(1, [SIMULATED, ROW, EARLY, MICRO]))
def test_the_simulated_core_takes_the_predicted_cycles(config):
    data, x, expected = stream(10, 2, 5, -11, 100, count=6)
    program = compiled(data, config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x, expected, strict=True):
            np.testing.assert_array_equal(session(row[None])[0], wanted)
            assert session.cycles == program.cycles
