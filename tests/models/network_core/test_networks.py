"""The networks of MLPerf Tiny and of the examples on network cores: all bytes are equal."""

import numpy as np
import pytest
from digits import CNN, MLP
from network_cores import BATCH1, LARGE, ODD, SMALL, SPRAM, TINY, network_core_config
from network_programs import random_inputs

import weft
from weft.boards.designs import BATCH1_85F, NETWORKS_85F
from weft.models.network_core.runners import GoldenRunner
from weft.models.oracles import answers

pytest.importorskip("tflite")

# With space for all maps at once.
ROOMY = network_core_config(8, 8, 8, 8, words=65536)


def record_of(path):
    """The arrays of a file."""
    with np.load(path) as record:
        return dict(record)


@pytest.mark.parametrize("name, config", [
    ("ad01_int8", BATCH1_85F.config), ("kws_int8", LARGE), ("kws_int8", SMALL),
    ("resnet8_int8", LARGE), ("vww_96_int8", LARGE), ("kws_int8", SPRAM),
    pytest.param("resnet8_int8", SPRAM, marks=pytest.mark.slow),
])
def test_outputs(mlperf_tiny, name, config):
    """Two inferences, with maps that share their memory, in the list's earliest and latest order.
    """
    program = weft.load(mlperf_tiny / f"{name}.tflite").compile(config)
    record = record_of(mlperf_tiny / f"{name}.npz")
    shape = program.tensors[program.inputs[0]].shape
    x = record["model_in"][:2].reshape(2, *shape[1:])
    for eager in (True, False):
        with program.open(GoldenRunner(config, eager=eager)) as session:
            y = session(x)
        assert np.array_equal(y.reshape(2, -1), record["model_out_tflm"][:2].reshape(2, -1))


def test_a_classifier_is_one_list(mlperf_tiny):
    """With SOFTMAX on the core, the list has the bytes of all recorded outputs."""
    config = NETWORKS_85F.config
    program = weft.load(mlperf_tiny / "kws_int8.tflite").compile(config)
    assert (len(program.segments), program.host) == (1, ())
    record = record_of(mlperf_tiny / "kws_int8.npz")
    x, expected = record["model_in"], record["model_out_tflm"]
    x = x.reshape(len(x), *program.tensors[program.inputs[0]].shape[1:])
    with program.open(GoldenRunner(config)) as session:
        y = session(x)
    assert np.array_equal(y.reshape(len(x), -1), expected.reshape(len(x), -1))


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


@pytest.mark.parametrize("config", [LARGE, SMALL, BATCH1, ODD, TINY], ids=lambda c: c.array.name)
@pytest.mark.parametrize("path", [MLP, CNN], ids=lambda path: path.stem)
def test_digits(path, config):
    pytest.importorskip("tflite_micro")
    network = weft.load(path)
    program = network.compile(config)
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(config)) as session:
        y = session(x)
    [[wanted]] = [a.outputs for a in answers("tflm", network, program, x)]
    assert np.array_equal(y.reshape(2, -1), wanted.reshape(2, -1))
