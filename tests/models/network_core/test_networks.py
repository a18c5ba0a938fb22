"""The networks of MLPerf Tiny and of the examples on cores for networks: all bytes are equal."""


import numpy as np
import pytest
from digits import CNN, MLP
from network_chips import BATCH1, LARGE, ODD, SMALL, SPRAM, TINY, network_chip
from network_programs import random_inputs

import weft
from weft.boards.network_designs import BATCH1_85F
from weft.models.network_core.golden_runner import GoldenRunner
from weft.models.oracles import answers

pytest.importorskip("tflite")

# With space for all maps at once.
ROOMY = network_chip(8, 8, 8, 8, words=65536)


def record_of(path):
    """The arrays of a file."""
    with np.load(path) as record:
        return dict(record)


@pytest.mark.parametrize("name, chip", [
    ("ad01_int8", BATCH1_85F.chip), ("kws_int8", LARGE), ("kws_int8", SMALL),
    ("resnet8_int8", LARGE), ("vww_96_int8", LARGE), ("kws_int8", SPRAM),
    pytest.param("resnet8_int8", SPRAM, marks=pytest.mark.slow),
])
def test_outputs(mlperf_tiny, name, chip):
    """Two inferences, with maps that share their memory, in the list's earliest and latest order.
    """
    program = weft.load(mlperf_tiny / f"{name}.tflite").compile(chip)
    record = record_of(mlperf_tiny / f"{name}.npz")
    shape = program.tensors[program.inputs[0]].shape
    x = record["model_in"][:2].reshape(2, *shape[1:])
    for eager in (True, False):
        with program.open(GoldenRunner(chip, eager=eager)) as session:
            y = session(x)
        assert np.array_equal(y.reshape(2, -1), record["model_out_tflm"][:2].reshape(2, -1))


@pytest.mark.parametrize("name", ["kws_int8", "resnet8_int8", "vww_96_int8"])
def test_activations(mlperf_tiny, name):
    program = weft.load(mlperf_tiny / f"{name}.tflite").compile(ROOMY, activations=True)
    record = record_of(mlperf_tiny / f"{name}_activations.npz")
    x = record["model_in"].reshape(program.tensors[program.inputs[0]].shape)
    with program.open(GoldenRunner(ROOMY)) as session:
        _, found = session(x, activations=True)
    assert len(found) == len(program.operators)
    for key, y in found.items():
        assert np.array_equal(y.ravel(), record[key].ravel()), key


@pytest.mark.parametrize("chip", [LARGE, SMALL, BATCH1, ODD, TINY], ids=lambda c: c.core.name)
@pytest.mark.parametrize("path", [MLP, CNN], ids=lambda path: path.stem)
def test_digits(path, chip):
    pytest.importorskip("tflite_micro")
    network = weft.load(path)
    program = network.compile(chip)
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(chip)) as session:
        y = session(x)
    [[wanted]] = [a.outputs for a in answers("tflm", network, program, x)]
    assert np.array_equal(y.reshape(2, -1), wanted.reshape(2, -1))
