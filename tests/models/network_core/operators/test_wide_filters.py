"""SVDF with a state of int16 in the memory of a network core: streams against TFLite Micro."""

from dataclasses import replace

import numpy as np
import pytest
from network_cores import BATCH1, EARLY_ROW, LARGE, MICRO, ROW, SMALL, network_core_config
from products import integers
from streaming_files import svdf_file
from tflite_files import runner
from tiers import quick

import weft
from weft.host.recovery import AcceleratorError
from weft.models.network_core.operators.wide_filters import first_state
from weft.models.network_core.runners import GoldenRunner
from weft.models.report.placement import operator_lines, reasons_of
from weft.sim.network_core import SimulatedRunner

# A vector has the bytes of 8 values.
DEEP = network_core_config(2, 4, 16, 4, int16=True, b_words=4096)
CONFIGS = [ROW, replace(LARGE, int16=True), replace(SMALL, int16=True), DEEP,
           replace(BATCH1, int16=True)]
CASES = [  # filters, rank, values in time, zero point of the input
    [10, 2, 5, -11], [27, 3, 2, 0], [8, 1, 4, 127], [7, 1, 1, -128], [33, 1, 8, -7], [5, 5, 9, 3],
    [12, 1, 255, -128],
]


def stream(filters, rank, memory, x_zero, seed=1, count=16, **options):
    """A file, inputs, and the outputs of TFLite Micro."""
    data = svdf_file(
        np.random.default_rng(seed), filters, rank, memory, x_zero, 0, kind="int16", **options
    )
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


@pytest.mark.parametrize("case", quick(1, CASES))
@pytest.mark.parametrize("config", quick(1, CONFIGS))
def test_a_filter_is_a_part_of_the_list(case, config):
    """Beside layers, alone, and one after the other."""
    for options in ({}, {"layers": False, "count": 2}, {"pixels": 6}):
        data, x, expected = stream(*case, **options)
        program = compiled(data, replace(config, words=config.most_words))
        with program.open(GoldenRunner(program.config, eager=False)) as session:
            np.testing.assert_array_equal(session(x), expected)
            session.reset()
            np.testing.assert_array_equal(session(x[:5]), expected[:5])


@pytest.mark.parametrize("time, y_scale", [(32767, 0.1), (-32768, 0.1), (255, 0.002), (-1, 1e-5)])
def test_values_at_their_limits(time, y_scale):
    """States saturate, sums exceed 32 bits, and each weight has another number of digits."""
    features = np.tile(np.int8([[127], [-128]]), (4, 13))
    data = svdf_file(
        np.random.default_rng(1), 8, 1, 6, 5, 0, kind="int16", layers=False, features=features,
        time=np.full((8, 6), time, np.int16), y_scale=y_scale,
    )
    x = np.int8(np.clip(np.arange(-12, 20)[:, None] ** 3 / 9 + np.arange(13), -128, 127))
    run = runner(data)
    expected = np.concatenate([run(row[None])[0] for row in x])
    assert len(np.unique(expected, axis=0)) > 3
    with compiled(data, ROW).open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_the_state_begins_with_zeros():
    """The low byte of a value is stored less 128; the outputs are whole vectors and tiles."""
    given = {"time": np.zeros((6, 3), np.int16), "rank": 2}
    state = first_state(given, cols=8, depth=4)
    assert state.shape == (1, 2, 3, 16) and state.dtype == np.int8
    assert (256 * state[..., ::2].astype(int) + state[..., 1::2] + 128 == 0).all()
    assert first_state(given, cols=4, depth=16).shape == (1, 2, 3, 16)


def test_two_programs_on_one_core():
    """Another program on the core is an error until a reset, which fills the state again."""
    data, x, expected = stream(*CASES[0])
    other, z, wanted = stream(*CASES[2], seed=5)
    core = GoldenRunner(ROW)
    one, two = compiled(data, ROW).open(core), compiled(other, ROW).open(core)
    np.testing.assert_array_equal(one(x[:4]), expected[:4])
    np.testing.assert_array_equal(two(z[:4]), wanted[:4])
    with pytest.raises(AcceleratorError, match="variables in the memory of the core are lost"):
        one(x[4:5])
    one.reset()
    np.testing.assert_array_equal(one(x[:6]), expected[:6])


def test_a_program_file_has_the_first_state(tmp_path):
    data, x, expected = stream(*CASES[0])
    compiled(data, ROW).save(tmp_path / "net.weft")
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)


def test_without_the_option():
    """The core computes the products of the input, and the host all else, with the same bytes."""
    data, x, expected = stream(*CASES[0])
    for config in (LARGE, MICRO):
        program = weft.load(data, "net").compile(config)
        text = (
            "on the host: SVDF: the core has no values of 16 bits; a network core with int16 ="
            " true in [network_core] computes it"
        )
        assert text in reasons_of(program)
        with program.open("golden") as session:
            np.testing.assert_array_equal(session(x), expected)


def test_other_modes_and_batches():
    data, _, _ = stream(*CASES[0])
    single = replace(LARGE, array=replace(LARGE.array, requantize="single"))
    for config, options, reason in (
        (single, {}, "the core keeps its state in mode tflite, not single"),
        (ROW, {"batch": 2}, "the core keeps its state in lists of one inference"),
    ):
        assert reason in " ".join(reasons_of(weft.load(data, "net").compile(config, **options)))


def test_the_lines_of_a_core():
    first, *others = operator_lines(ROW)
    assert "tensors and states of int16" in first and not others
    assert "with int16 = true in [network_core] also: tensors and states of int16" in (
        operator_lines(LARGE)
    )
    assert not any("int16" in line for line in operator_lines(MICRO))


@pytest.mark.long
@pytest.mark.parametrize("config", quick(1, [ROW, EARLY_ROW]))
def test_the_simulated_core_takes_the_predicted_cycles(config):
    data, x, expected = stream(*CASES[0], count=6)
    program = compiled(data, config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x, expected, strict=True):
            np.testing.assert_array_equal(session(row[None])[0], wanted)
            assert session.cycles == program.cycles
