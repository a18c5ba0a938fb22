"""LSTM on a core that has it, in one list: streams against TFLite Micro."""

from dataclasses import replace

import numpy as np
import pytest
from lstm_files import lstm as lstm_file
from network_cores import EARLY_ROW, LARGE, MICRO, ODD, PROGRAM, ROW, SMALL
from products import integers
from tflite_files import runner
from tiers import quick

import weft
from tools.network_writer import Writer
from weft.models.errors import UnfitError
from weft.models.network_core.operators.lstm import MAX_STEPS, reason_of
from weft.models.network_core.runners import GoldenRunner
from weft.models.report.placement import operator_lines, reasons_of
from weft.sim.network_core import SimulatedRunner

CONFIGS = [
    ROW, *(replace(config, lstm=True) for config in (LARGE, SMALL, ODD, PROGRAM)),
]
CASES = [  # steps, units, values of a step, and fields of `Writer.lstm`
    [3, 5, 7, {}], [1, 9, 3, {"cell": 2**-15}], [4, 20, 4, {"clip": 0.0, "cell": 2**-9}],
    [9, 7, 33, {"clip": 0.3}], [5, 6, 6, {"major": True}],
]


def between_layers(steps, units, size, fields, seed=1):
    """A file: a dense layer, two LSTM, and a dense layer."""
    w = Writer(seed, (1,))
    major = fields.get("major", False)
    w.input((steps, 1, size) if major else (1, steps, size), "x")
    x = w.lstm(w.dense("x", 8, keep=True), units, **fields)
    return w.file(w.dense(w.lstm(x, 5, **fields), 6))


def alone(steps, units, size, fields, seed=1):
    """A file of an LSTM, whose input and output are those of the network."""
    w = Writer(seed, (1,))
    w.input((steps, 1, size) if fields.get("major", False) else (1, steps, size), "x")
    return w.file(w.lstm("x", units, **fields))


def stream(data, count=6):
    """Inputs, and the outputs of TFLite Micro."""
    shape = weft.load(data, "net").graph.tensors[0].shape
    x, run = integers(np.random.default_rng(2), np.int8, count, *shape), runner(data)
    x[::2] //= 9
    expected = np.stack([run(row)[0] for row in x])
    assert len(np.unique(expected, axis=0)) == count
    return x, expected


def same(session, x, expected):
    for row, wanted in zip(x, expected, strict=True):
        np.testing.assert_array_equal(session(row), wanted)


def compiled(data, config):
    """A program of one list."""
    program = weft.load(data, "net").compile(config)
    assert len(program.segments) == 1 and not program.host and not program.host_states
    return program


@pytest.mark.parametrize("case", quick(2, CASES))
@pytest.mark.parametrize("config", quick(1, CONFIGS))
def test_an_lstm_is_a_part_of_the_list(case, config):
    for data in (between_layers(*case), alone(*case)):
        x, expected = stream(data)
        with compiled(data, config).open(GoldenRunner(config, eager=False)) as session:
            same(session, x, expected)
            session.reset()
            same(session, x[:2], expected[:2])


@pytest.mark.slow
@pytest.mark.parametrize("config", quick(1, [ROW, EARLY_ROW]))
def test_the_simulated_core_takes_the_predicted_cycles(config):
    data = between_layers(3, 5, 7, {})
    x, expected = stream(data, 3)
    program = compiled(data, config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x, expected, strict=True):
            np.testing.assert_array_equal(session(row), wanted)
            assert session.cycles == program.cycles


def test_a_program_file_has_the_first_state(tmp_path):
    data = alone(2, 9, 3, {})
    x, expected = stream(data)
    compiled(data, ROW).save(tmp_path / "net.weft")
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        same(session, x, expected)


def reasons(data, config, **options):
    """What the report says of the operators of the host."""
    return " ".join(reasons_of(weft.load(data, "net").compile(config, **options)))


def test_without_the_option():
    """The core computes the products alone, and the bytes are the same."""
    data = between_layers(3, 5, 7, {})
    x, expected = stream(data)
    for config in (LARGE, MICRO):
        program = weft.load(data, "net").compile(config)
        text = (
            "partly on the host: UNIDIRECTIONAL_SEQUENCE_LSTM (2 times): the core has no unit for"
            " its gates and its cell, of 16 bits; a network core with lstm = true in"
            " [network_core] computes it"
        )
        assert text in reasons_of(program)
        with program.open("golden") as session:
            same(session, x, expected)


@pytest.mark.parametrize("fields, reason", [
    (dict(cell=2**-8), "the scale of its cell must be 2**-15 to 2**-9, not 2**-8"),
    (dict(batch=2), "its input must have one sequence, not 2"),
    (dict(kind="int16", zero=0, x_zero=0), "its activations must have 8 bits, not 16"),
    (dict(time=MAX_STEPS + 1), "its steps in time must be at most 256, not 257"),
])
def test_what_the_host_computes(fields, reason):
    data = lstm_file(np.random.default_rng(1), **{"batch": 1, "time": 2} | fields)
    graph = weft.load(data, "net").graph
    assert reason_of(graph, graph.nodes[1]) == reason


@pytest.mark.slow
def test_many_steps_between_layers():
    """The host computes them, and the core their products."""
    w = Writer(1, (1,))
    w.input((1, MAX_STEPS + 1, 2), "x")
    data = w.file(w.lstm(w.dense("x", 4, keep=True), 2))
    x, expected = stream(data, 1)
    config = replace(LARGE, lstm=True)
    assert "LSTM: its steps in time must be at most 256, not 257;" in reasons(data, config)
    with weft.load(data, "net").compile(config).open("golden") as session:
        same(session, x, expected)


def test_a_memory_that_is_too_small_is_named():
    """Without the state in the memory no layer would be left; this is not the reason."""
    text = r"net: the memory must have 42,576 bytes \(maps 14,400, .* 34,384 bytes are missing"
    with pytest.raises(UnfitError, match=text):
        weft.load(alone(20, 40, 30, {}), "net").compile(replace(ROW, words=512))


def test_other_modes_and_batches():
    data = between_layers(3, 5, 7, {})
    single = replace(LARGE, array=replace(LARGE.array, requantize="single"))
    assert "the core keeps its state in mode tflite, not single" in reasons(data, single)
    assert "the core keeps its state in lists of one inference" in reasons(data, ROW, batch=2)


def test_the_lines_of_a_core():
    first, *others = operator_lines(ROW)
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in first and not others
    assert "with lstm = true in [network_core] also: UNIDIRECTIONAL_SEQUENCE_LSTM" in (
        operator_lines(LARGE)
    )
