"""The networks of MLPerf Tiny on cores: all bytes equal TFLite Micro's, all cycles as predicted."""

import numpy as np
import pytest
from tiers import quick

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.sim.transport import SimTransport

pytest.importorskip("tflite")

# The Config of a board with an 85F, and a small one with all options.
LARGE = Config(
    target="ecp5", rows=8, cols=8, depth=8, hop=2, dsp_cols=4, lanes=2, jobs=4, activation="none",
    a_words=512, b_words=512,
)
SMALL = Config(
    rows=4, cols=4, depth=4, lanes=2, bytes_in=8, bytes_out=4, a_words=256, b_words=256,
    b_zero_point="column",
)
NAMES = "ad01_int8", "kws_int8", "resnet8_int8", "vww_96_int8"


def record_of(path):
    """The arrays of a file."""
    with np.load(path) as record:
        return dict(record)


def check(folder, name, config, transport):
    """Compare all activations, or the outputs if there are none, and the cycles of each step."""
    network = weft.load(folder / f"{name}.tflite")
    program = network.compile(config, activations=True)
    record = record_of(folder / f"{name}.npz")
    shape = program.tensors[program.inputs[0]].shape
    operators = folder / f"{name}_activations.npz"
    with program.open(transport) as session:
        if operators.exists():
            expected = record_of(operators)
            x = expected["model_in"].reshape(shape)
            _, records, found = session(x, stats=True, activations=True)
            assert len(found) == len(program.operators)
            for key, y in found.items():
                assert np.array_equal(y.ravel(), expected[key].ravel()), key
        else:
            y, records = session(record["model_in"][0].reshape(shape), stats=True)
            assert np.array_equal(y.ravel(), record["model_out_tflm"][0].ravel())
    for entry in records:
        if entry.stats:
            assert abs(entry.stats.cycles - entry.step.estimate.cycles) <= (
                0.01 * entry.step.estimate.cycles
            )


@pytest.mark.parametrize("name", NAMES)
def test_golden(mlperf_tiny, name):
    check(mlperf_tiny, name, LARGE, GoldenTransport(LARGE))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_golden_on_a_small_core(mlperf_tiny, name):
    check(mlperf_tiny, name, SMALL, GoldenTransport(SMALL))


@pytest.mark.parametrize("name", quick(1, ["ad01_int8", "kws_int8"]))
def test_simulated_core(mlperf_tiny, name):
    config = Config()  # its model is compiled for other tests, too
    check(mlperf_tiny, name, config, SimTransport(config))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_simulated_core_of_an_85f(mlperf_tiny, name):
    check(mlperf_tiny, name, LARGE, SimTransport(LARGE))


def test_a_batch(mlperf_tiny):
    program = weft.load(mlperf_tiny / "kws_int8.tflite").compile(LARGE)
    record = record_of(mlperf_tiny / "kws_int8.npz")
    count, shape = 3, program.tensors[program.inputs[0]].shape
    x = record["model_in"][:count].reshape(count, *shape[1:])
    with program.open(GoldenTransport(LARGE)) as session:
        y = session(x)
    assert np.array_equal(y.reshape(count, -1), record["model_out_tflm"][:count].reshape(count, -1))
