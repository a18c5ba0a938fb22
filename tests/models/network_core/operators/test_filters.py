"""SVDF with a state of int8 in the memory of a network core: streams against TFLite Micro."""


from dataclasses import replace

import numpy as np
import pytest
from network_cores import EARLY, LARGE, MICRO, ODD, ROW, SIMULATED
from products import integers
from streaming_files import svdf_file
from tflite_files import runner
from tiers import quick

import weft
from weft.host.recovery import AcceleratorError
from weft.models.network_core.runners import GoldenRunner
from weft.models.report.placement import reasons_of
from weft.sim.network_core import SimulatedRunner

CASES = [  # filters, rank, values in time, zero points of the input and of the state
    [10, 2, 5, -11, 100], [8, 1, 4, 127, -128], [7, 1, 1, -128, 127], [27, 3, 2, 0, 0],
    [64, 1, 8, -7, -50], [5, 5, 9, 3, 1], [12, 1, 255, -128, -1],  # weights of parts of a kernel
]


def stream(*case, seed=1, count=24, **options):
    """A file, inputs, and the outputs of TFLite Micro."""
    data = svdf_file(np.random.default_rng(seed), *case, **options)
    pixels = options.get("pixels", 1)
    shape = (13,) if pixels == 1 else (1, pixels, 13)
    x = integers(np.random.default_rng(seed + 1), np.int8, count, *shape)
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


@pytest.mark.parametrize("case", quick(3, CASES))
@pytest.mark.parametrize("config", quick(1, [SIMULATED, LARGE, ODD, MICRO]))
def test_a_filter_is_a_part_of_the_list(case, config):
    """Beside layers, alone, and one after the other; also with new values that wrap."""
    for options in ({}, {"layers": False, "count": 2}, {"pixels": 6}):
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


def test_the_range_of_new_values():
    """Weights whose sum is 0 allow large values; weights of one sign allow only negative ones."""
    jobs, rng = [], np.random.default_rng(3)
    for weights, x_zero in (([110, -110] * 6 + [0], 0), ([-90] * 13, -128)):
        signs, features = np.clip(weights, -1, 1), np.tile(np.int8(weights), (8, 1))
        data = svdf_file(rng, 8, 1, 4, x_zero, 9, layers=False, features=features)
        x = integers(rng, np.int8, 16, 13) // np.int8([[8], [1]] * 8)
        x[::4] = np.clip(x_zero + 60 * signs, -128, 127)
        run, program = runner(data), compiled(data, SIMULATED)
        jobs.append(sum(step.jobs for step in program.layers))
        with program.open("golden") as session:
            for row in x:
                np.testing.assert_array_equal(session(row[None]), run(row[None])[0])
    assert jobs == [5, 3]


def test_a_filter_of_the_second_list():
    data, x, expected = stream(10, 2, 5, 3, 100, host=True)
    program = weft.load(data, "net").compile(SIMULATED)
    assert len(program.segments) == 2 and len(program.variables) == 1
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def reasons(data, config, **options):
    """Why the host computes filters."""
    program = weft.load(data, "net").compile(config, **options)
    return [step.placement.reason for step in program.host if "SVDF" in step.operators]


def test_what_the_host_computes():
    case = 6, 2, 3, -11, 5
    data = svdf_file(np.random.default_rng(1), *case)
    single = replace(LARGE, array=replace(LARGE.array, requantize="single"))
    long = svdf_file(np.random.default_rng(1), 6, 1, 300, -11, 5)
    wide = svdf_file(np.random.default_rng(1), *case, kind="int16")
    for found, reason in (
        (reasons(data, single), "the core keeps its state in mode tflite, not single"),
        (reasons(data, SIMULATED, batch=2), "the core keeps its state in lists of one inference"),
        (reasons(data, SIMULATED, activations=True),
         "the program keeps no state in the memory of the core"),
        (reasons(long, LARGE), "its kernel must be at most 255 x 255, not 1 x 300"),
        (reasons(wide, SIMULATED), "the core has no values of 16 bits"),
    ):
        assert reason in found


def test_the_host_computes_a_filter_that_does_not_fit():
    """The reason is that of this core, and no claim about all of them."""
    data, x, expected = stream(6, 1, 300, -11, 5, count=8)
    program = weft.load(data, "net").compile(LARGE)
    assert "on the host: SVDF: its kernel must be at most 255 x 255, not 1 x 300" in (
        reasons_of(program)
    )
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_two_programs_on_one_core():
    """Another program on the core is an error until a reset, which fills the state again."""
    data, x, expected = stream(10, 2, 5, -11, 100)
    other, z, wanted = stream(7, 1, 3, -128, 127, seed=5)
    core = GoldenRunner(SIMULATED)
    one, two = compiled(data, SIMULATED).open(core), compiled(other, SIMULATED).open(core)
    np.testing.assert_array_equal(one(x[:4]), expected[:4])
    np.testing.assert_array_equal(two(z[:4]), wanted[:4])
    with pytest.raises(AcceleratorError, match="variables in the memory of the core are lost"):
        one(x[4:5])
    np.testing.assert_array_equal(two(z[4:]), wanted[4:])
    one.reset()
    np.testing.assert_array_equal(one(x[:6]), expected[:6])


def test_a_program_file_with_two_states(tmp_path):
    data, x, expected = stream(7, 1, 3, -128, 127, count=2)
    path = tmp_path / "net.weft"
    compiled(data, SIMULATED).save(path)
    with weft.load(path).open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_without_a_bias():
    """TFLite Micro does not read such files."""
    case = 6, 2, 3, -11, 5
    _, x, expected = stream(*case, bias=0, layers=False)
    data = svdf_file(np.random.default_rng(1), *case, bias=None, layers=False)
    program = compiled(data, SIMULATED)
    assert sum(step.macs for step in program.steps) == 6 * (13 + 3)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


@pytest.mark.parametrize("config", quick(1, [SIMULATED, ROW, EARLY, MICRO]))
def test_the_simulated_core_takes_the_predicted_cycles(config):
    data, x, expected = stream(10, 2, 5, -11, 100, count=6)
    program = compiled(data, config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x, expected, strict=True):
            np.testing.assert_array_equal(session(row[None])[0], wanted)
            assert session.cycles == program.cycles
